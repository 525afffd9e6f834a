import type { Logger } from 'pino';

import { StoreUnavailableError } from '../../limiter/errors.js';
import type { Decision, Operator, Peek } from '../../limiter/limiter.js';
import type { Decided } from './decide-check.js';
import type { AskedCheck } from './lists-of-checks.js';

/** What was decided on a check, or what a peek in its place has found, for which nothing is counted. */
export type DecidedOrPeeked = Omit<Decided, 'decision'> & { readonly decision: Decision | Peek };

/** What a caller asks for together with others. */
export interface AskedTogether extends AskedCheck {
  /** How many hits to give back, instead of a check, once all checks are approved. */
  readonly refund?: number | undefined;
}

/** What decides checks together. */
export interface Together {
  readonly limiter: Operator<'release' | 'giveBack'>;
  /** For the approvals that are released. */
  readonly log: () => Logger;
  decide(check: AskedTogether): Promise<DecidedOrPeeked>;
  /** Runs `work`, which decides a check and does not throw, as soon as the caller's share of the store allows. */
  inShare(check: AskedCheck, work: () => Promise<void>): Promise<void>;
  /** Withdraws the checks that wait, and lets no check wait from now on. */
  withdrawWaiting(): void;
  /** Takes each error that is not thrown, since another error is thrown, or another check is denied. */
  onSuppressedError(error: unknown): void;
  /** Whether the caller has given up. */
  readonly isCancelled: boolean;
}

/**
 * Decides checks of which all are approved, or none: if one is not, the approvals of the others are released. Checks
 * that may wait come first, so that an approval of the others counts in the window in which it is used. Refunds come last, since
 * nothing takes them back.
 * @returns in the order of the checks; undefined for a check that was not decided, since another is denied or the
 *   caller has given up
 * @throws the first error, if no check is denied
 */
export async function decideTogether(
  checks: readonly AskedTogether[],
  together: Together,
): Promise<(DecidedOrPeeked | undefined)[]> {
  const decided = new Map<AskedTogether, DecidedOrPeeked>();
  const failures: unknown[] = [];
  const state = { isOver: false };

  const decideOne = async (check: AskedTogether): Promise<void> => {
    // It may have waited for the caller's share.
    if (state.isOver || together.isCancelled) return;
    try {
      const result = await together.decide(check);
      decided.set(check, result);
      if (passes(result)) return;
    } catch (error) {
      failures.push(error);
    }
    state.isOver = true;
    together.withdrawWaiting();
  };

  for (const turn of TURNS) {
    if (state.isOver) break;
    const asked = checks.filter((check) => turnOf(check) === turn);
    await Promise.all(asked.map((check) => together.inShare(check, () => decideOne(check))));
  }
  if (state.isOver || together.isCancelled) await releaseAll(decided, together);
  const isDenied = [...decided.values()].some(isDenial);
  for (const failure of isDenied ? failures : failures.slice(1)) {
    together.onSuppressedError(failure);
  }
  if (!isDenied && failures.length > 0) throw failures[0];
  return checks.map((check) => decided.get(check));
}

const TURNS = ['may wait', 'at once', 'refund'] as const;

function turnOf({ canWait, refund }: AskedTogether): (typeof TURNS)[number] {
  if (refund !== undefined) return 'refund';
  return canWait ? 'may wait' : 'at once';
}

/** Whether a check is no reason to deny its request: it is approved, or a shadow rule lets it pass. */
export function passes({ decision, policy }: DecidedOrPeeked): boolean {
  return decision.outcome === 'approved' || (decision.outcome === 'denied' && policy.isShadow);
}

function isDenial(decided: DecidedOrPeeked): boolean {
  return decided.decision.outcome === 'denied' && !passes(decided);
}

async function releaseAll(
  decided: ReadonlyMap<AskedCheck, DecidedOrPeeked>,
  together: Together,
): Promise<void> {
  await Promise.all(
    [...decided].map(async ([check, { decision }]) => {
      if (decision.outcome === 'approved' && 'requestId' in decision) {
        await releaseUnused(check, decision.requestId, together);
      }
    }),
  );
}

/**
 * Releases an approval that nobody uses, before the caller is answered. If the store can't be asked now, the approval is given back
 * later.
 */
export async function releaseUnused(
  { key }: Pick<AskedCheck, 'key'>,
  requestId: string,
  { limiter, log }: Pick<Together, 'limiter' | 'log'>,
): Promise<void> {
  const logger = log();
  logger.debug({ key, requestId }, 'nobody uses the approval; released');
  try {
    await limiter.ask('release', { key, requestId, isUnused: true });
  } catch (error) {
    if (!(error instanceof StoreUnavailableError)) {
      logger.warn({ err: error, key, requestId }, 'approval that nobody uses not released');
    }
    void limiter.ask('giveBack', { key, claim: requestId });
  }
}
