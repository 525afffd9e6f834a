import type { KeyLimits } from '../../limiter/limiter.js';
import type { KeyNames } from '../key-names.js';
import { type CallerSettings, sharedArguments } from './shared-arguments.js';

/** The verdicts of `lua/check.lua`; a larger number is a ticket in the queue. */
export const VERDICT = { approved: 1, denied: 0, queueFull: -1, noPlace: -2, keyFull: -3 } as const;

export interface BatchedCheck {
  readonly requestId: string;
  readonly canWait: boolean;
  /** With `canWait`: the check has no place to wait in. */
  readonly noPlace?: boolean;
}

export interface Overrides {
  readonly maxRequests: number | undefined;
  readonly maxRequestsInQueue: number | undefined;
}

/** A replica's knowledge of a key for which its requests wait. */
export interface KnownWaiting {
  readonly lowestTicket: number;
  readonly millisToWindowEnd: number;
}

/** Checks of one key with the same overrides, in their order. */
export interface CheckBatch {
  readonly names: KeyNames;
  readonly overrides: Overrides;
  /** The waiters of the key here, if there are any. They show whether Redis has lost its queue. */
  readonly waiting: KnownWaiting | undefined;
  readonly checks: readonly BatchedCheck[];
}

export interface CheckCircumstances {
  /** The call may have run before. */
  readonly isSentAgain: boolean;
  /** Redis may have no memory left. Where this is not said, it then refuses keys that are there, too. */
  readonly mayBeFull: boolean;
}

export interface CheckBatchReply {
  /** Until the window ends, or until there may be room sooner. 0: there is room for waiters now. */
  readonly millisToRoom: number;
  readonly maxRequests: number;
  /** In the window, after these checks. */
  readonly approved: number;
  /** For each check, in their order: one of {@link VERDICT}, or the ticket of its place in the queue. */
  readonly verdicts: readonly number[];
}

/**
 * The arguments of `lua/check.lua`. The limits of the first batch's key are those of the call.
 * @param batches one at least
 */
export function encodeChecks(
  settings: CallerSettings,
  batches: readonly CheckBatch[],
  { isSentAgain, mayBeFull }: CheckCircumstances,
): (string | number)[] {
  const limits = batches.map(({ names }) => settings.limitsOf(names.key));
  const [first] = limits;
  if (!first) throw new Error('a call without a batch');
  const args = [...sharedArguments(settings, first), (isSentAgain ? 1 : 0) + (mayBeFull ? 2 : 0)];
  for (const [i, batch] of batches.entries()) {
    args.push(...encodeBatch(batch, limits[i] ?? first, first));
  }
  return args;
}

/**
 * @param limits of the batch's key
 * @param ofCall the limits that the call has for keys without their own
 */
function encodeBatch(batch: CheckBatch, limits: KeyLimits, ofCall: KeyLimits): (string | number)[] {
  const { overrides, waiting, checks } = batch;
  const { maxRequests = '', maxRequestsInQueue = '' } = overrides;
  const { ceilings } = limits;
  const args: (string | number)[] = [
    limits === ofCall
      ? ''
      : `${limits.windowMillis}:${limits.maxRequests}:${limits.maxRequestsInQueue}`,
    ceilings ? `${ceilings.maxRequests}:${ceilings.maxRequestsInQueue}` : '',
    maxRequests,
    maxRequestsInQueue,
    waiting?.lowestTicket ?? '',
    waiting?.millisToWindowEnd ?? 0,
    checks.length,
  ];
  for (const check of checks) args.push(check.requestId, encodeWait(check));
  return args;
}

function encodeWait({ canWait, noPlace }: BatchedCheck): string {
  if (!canWait) return '0';
  return noPlace ? '2' : '1';
}

export function decodeBatchReply(reply: readonly number[]): CheckBatchReply {
  const [micros = 0, maxRequests = 0, approved = 0, ...verdicts] = reply;
  return { millisToRoom: micros / 1000, maxRequests, approved, verdicts };
}
