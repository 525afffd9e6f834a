import { CallerPresence } from '../../src/limiter/request.js';
import type { CheckRequest, Decision, Limiter } from '../../src/limiter/limiter.js';
import { until } from './until.js';

/** A check under way, with its outcome so far, and a way for its client to disconnect. */
export interface WatchedCheck {
  readonly decision: Promise<Decision>;
  /** The decision, once it is known. */
  readonly settled: Decision | undefined;
  /** The error that it failed with, once it has failed. */
  readonly failure: Error | undefined;
  disconnect(): void;
}

/** What a check that waits may ask for. */
export type WaitTerms = Pick<
  CheckRequest,
  | 'maxWaitMillis'
  | 'hits'
  | 'holdMillis'
  | 'holder'
  | 'requestId'
  | 'keepMillis'
  | 'answerMillis'
  | 'list'
>;

export function startCheck(
  limiter: Limiter,
  request: Partial<CheckRequest> & { key: string },
): WatchedCheck {
  const caller = new CallerPresence();
  const decision = limiter.check({ canWait: false, ...request }, caller);
  const check = {
    decision,
    settled: undefined as Decision | undefined,
    failure: undefined as Error | undefined,
    disconnect: () => {
      caller.disconnect();
    },
  };
  decision.then(
    (settled) => (check.settled = settled),
    // The code that awaits `decision` also gets the error.
    (error: unknown) => (check.failure = error as Error),
  );
  return check;
}

/** Sends a check and returns when the queue has it. */
export async function startWaiting(
  limiter: Limiter,
  key: string,
  terms: WaitTerms = {},
): Promise<WatchedCheck> {
  const before = (await limiter.ask('inspect', { key }))?.waiting ?? 0;
  const check = startCheck(limiter, { key, canWait: true, ...terms });
  await until(async () => {
    if (check.failure) throw check.failure;
    if (check.settled) throw new Error(`did not wait: ${check.settled.outcome}`);
    return (await limiter.ask('inspect', { key }))?.waiting === before + 1;
  });
  return check;
}
