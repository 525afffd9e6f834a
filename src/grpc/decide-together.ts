import type { CheckRequest, Decision } from '../limiter/limiter.js';
import type { KeyPolicy } from '../rules/policy.js';

/** What became of one check. */
export interface Decided {
  readonly check: CheckRequest;
  readonly decision: Decision;
  readonly policy: KeyPolicy;
}

interface Together {
  decide(check: CheckRequest): Promise<Decided>;
  /** Runs `work`, which decides a check and does not throw, when its turn has come. */
  inTurn(check: CheckRequest, work: () => Promise<void>): Promise<void>;
  /** Gives back an approval that is of no use. */
  release(check: CheckRequest, requestId: string): Promise<void>;
  /** Has nobody wait from now on: those who do are withdrawn. */
  withdrawWaiting(): void;
  /** Called with each error that is not thrown, since another is, or another check is refused. */
  onUntold(error: unknown): void;
  /** Whether nobody hears of the answer. */
  readonly isCancelled: boolean;
}

/**
 * Decides checks of which all are approved, or none: where one is not, the approvals of the others are given back. Those
 * that may wait come first, so that an approval of the others counts in the window in which it is used.
 * @returns in the order of the checks; undefined for one that was not decided, where another is refused or nobody hears
 *   of the answer
 * @throws what the first of them has thrown, where none is refused
 */
export async function decideTogether(
  checks: readonly CheckRequest[],
  together: Together,
): Promise<(Decided | undefined)[]> {
  const decided = new Map<CheckRequest, Decided>();
  const failures: unknown[] = [];
  const state = { isOver: false };

  const decideOne = async (check: CheckRequest): Promise<void> => {
    // It may have waited for its turn.
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

  for (const canWait of [true, false]) {
    if (state.isOver) break;
    const asked = checks.filter((check) => check.canWait === canWait);
    await Promise.all(asked.map((check) => together.inTurn(check, () => decideOne(check))));
  }
  const results = [...decided.values()];
  if (state.isOver || together.isCancelled) await giveBack(results, together);
  const isTold = !results.some(isRefused);
  for (const failure of isTold ? failures.slice(1) : failures) together.onUntold(failure);
  if (isTold && failures.length > 0) throw failures[0];
  return checks.map((check) => decided.get(check));
}

/** Whether a check is no reason to refuse its request: it is approved, or its limit is in the shadow. */
export function passes({ decision, policy }: Decided): boolean {
  return decision.outcome === 'approved' || (decision.outcome === 'denied' && policy.isShadow);
}

function isRefused(decided: Decided): boolean {
  return decided.decision.outcome === 'denied' && !passes(decided);
}

async function giveBack(all: readonly Decided[], together: Together): Promise<void> {
  await Promise.all(
    all.map(async ({ check, decision }) => {
      if (decision.outcome === 'approved') await together.release(check, decision.requestId);
    }),
  );
}
