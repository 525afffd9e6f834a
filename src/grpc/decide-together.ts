import type { Logger } from 'pino';

import { StoreUnavailableError } from '../limiter/errors.js';
import type { Operator } from '../limiter/limiter.js';
import type { Decided, Peeked } from '../service/deciding/decide-check.js';
import type { AskedCheck } from '../service/deciding/lists-of-checks.js';
import type { CallLog } from './call-log.js';
import type { GatewayCall } from './gateway-call.js';

/** What was decided on a check, or what a peek in its place has found, for which nothing is counted. */
export type DecidedOrPeeked = Decided | Peeked;

/** What a caller asks for together with others. */
export interface AskedTogether extends AskedCheck {
  /** How many hits to give back, instead of a check, once all checks are approved. */
  readonly refund?: number | undefined;
}

/** What decides the checks of a call together. */
interface Together {
  readonly call: GatewayCall;
  readonly log: CallLog;
  readonly limiter: Operator<'release' | 'giveBack'>;
  readonly shares: CheckShares;
  readonly decide: (check: AskedTogether) => Promise<DecidedOrPeeked>;
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
  { call, log, limiter, shares, decide }: Together,
): Promise<(DecidedOrPeeked | undefined)[]> {
  const decided = new Map<AskedTogether, DecidedOrPeeked>();
  const failures: unknown[] = [];
  const state = { isOver: false };

  const decideOne = async (check: AskedTogether): Promise<void> => {
    // It may have waited for the caller's share.
    if (state.isOver || call.isCancelled) return;
    try {
      const result = await decide(check);
      decided.set(check, result);
      if (passes(result)) return;
    } catch (error) {
      failures.push(error);
    }
    state.isOver = true;
    call.withdrawWaiting();
  };

  // A waiter has its own place, and would keep its share for too long.
  const inShare = (check: AskedTogether): Promise<void> =>
    checks.length === 1 || check.canWait
      ? decideOne(check)
      : shares.run(call.owner, () => decideOne(check));

  for (const turn of TURNS) {
    if (state.isOver) break;
    const asked = checks.filter((check) => turnOf(check) === turn);
    await Promise.all(asked.map(inShare));
  }
  if (state.isOver || call.isCancelled) {
    await Promise.all(
      [...decided].map(async ([check, { decision }]) => {
        if (decision.outcome === 'approved' && 'requestId' in decision) {
          await releaseUnused(check, decision.requestId, limiter, log.of(call));
        }
      }),
    );
  }
  const isDenied = [...decided.values()].some(
    (one) => one.decision.outcome === 'denied' && !passes(one),
  );
  for (const failure of isDenied ? failures : failures.slice(1)) {
    log.suppressed(failure, call);
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

/**
 * Releases an approval that nobody uses, before the caller is answered. If the store can't be asked now, the approval is given back
 * later.
 */
export async function releaseUnused(
  { key }: Pick<AskedCheck, 'key'>,
  requestId: string,
  limiter: Together['limiter'],
  logger: Logger,
): Promise<void> {
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

/** The most checks that the store is asked for at a time, by one caller and in all. */
const MAX_OF_CALLER = 1000;
const MAX_IN_ALL = 4000;

interface Share {
  underWay: number;
  /** What begins each check that waits. */
  readonly waiting: (() => void)[];
}

/**
 * Shares the store among callers whose calls have several descriptors. Checks beyond a share wait; callers
 * are served one after the other.
 */
export class CheckShares {
  #underWay = 0;
  readonly #shares = new Map<string, Share>();
  /** The shares of callers that wait, in the order in which they are served. */
  readonly #queue = new Set<Share>();

  /** Runs `ask`, which decides a check, as soon as the caller's share allows. */
  async run<T>(caller: string, ask: () => Promise<T>): Promise<T> {
    const share = this.#shares.get(caller) ?? { underWay: 0, waiting: [] };
    this.#shares.set(caller, share);
    await new Promise<void>((go) => {
      share.waiting.push(go);
      this.#queue.add(share);
      this.#letGo();
    });
    try {
      return await ask();
    } finally {
      this.#underWay -= 1;
      share.underWay -= 1;
      this.#letGo();
      if (share.underWay === 0 && share.waiting.length === 0) this.#shares.delete(caller);
    }
  }

  #letGo(): void {
    for (const share of this.#queue) {
      if (this.#underWay >= MAX_IN_ALL) return;
      if (share.underWay >= MAX_OF_CALLER) continue;
      const go = share.waiting.shift();
      this.#queue.delete(share);
      if (!go) continue;
      // The caller's next check comes after those of all others.
      if (share.waiting.length > 0) this.#queue.add(share);
      share.underWay += 1;
      this.#underWay += 1;
      go();
    }
  }
}
