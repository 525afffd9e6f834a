import type { Limits } from '../../limiter/limiter.js';
import type { KeyNames } from '../key-names.js';
import { type CallerSettings, sharedArguments } from './shared-arguments.js';

/** The verdicts of `lua/check.lua`; a larger number is a ticket in the queue. */
export const VERDICT = { approved: 1, denied: 0, queueFull: -1 } as const;

export interface BatchedCheck {
  readonly requestId: string;
  readonly canWait: boolean;
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

export interface CheckBatchReply {
  /** Until the window ends, or until there may be room sooner. 0: there is room for waiters now. */
  readonly millisToRoom: number;
  /** For each check, in their order: one of {@link VERDICT}, or the ticket of its place in the queue. */
  readonly verdicts: readonly number[];
}

/**
 * The arguments of `lua/check.lua`. The limits of the first batch's key are those of the call.
 * @param batches one at least
 * @param isSentAgain the call may have run before
 */
export function encodeChecks(
  settings: CallerSettings,
  batches: readonly CheckBatch[],
  isSentAgain: boolean,
): (string | number)[] {
  const limits = batches.map(({ names }) => settings.limitsOf(names.key));
  const [first] = limits;
  if (!first) throw new Error('a call without a batch');
  const args = [...sharedArguments(settings, first), isSentAgain ? '1' : '0'];
  for (const [i, batch] of batches.entries()) {
    args.push(...encodeBatch(batch, limits[i] === first ? undefined : limits[i]));
  }
  return args;
}

/** @param limits of the batch's key, where they differ from those of the call */
function encodeBatch(batch: CheckBatch, limits: Limits | undefined): (string | number)[] {
  const { overrides, waiting, checks } = batch;
  const { maxRequests = '', maxRequestsInQueue = '' } = overrides;
  const args: (string | number)[] = [
    limits ? `${limits.windowMillis}:${limits.maxRequests}:${limits.maxRequestsInQueue}` : '',
    maxRequests,
    maxRequestsInQueue,
    waiting?.lowestTicket ?? '',
    waiting?.millisToWindowEnd ?? 0,
    checks.length,
  ];
  for (const { requestId, canWait } of checks) args.push(requestId, canWait ? '1' : '0');
  return args;
}

export function decodeBatchReply([micros = 0, ...verdicts]: readonly number[]): CheckBatchReply {
  return { millisToRoom: micros / 1000, verdicts };
}
