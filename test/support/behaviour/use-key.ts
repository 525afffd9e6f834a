import type { CheckRequest, Decision, InstanceState } from '../../../src/limiter/limiter.js';
import type { InstanceBounds } from '../../../src/limiter/memory/memory-budget.js';
import type { HarnessFactory, LimiterHarness, LimitsOfKeys } from '../limiter-harness.js';
import { requestIdOf } from '../request-id-of.js';
import { uniqueKey } from '../unique-key.js';
import { startWaiting, type WaitTerms, type WatchedCheck } from '../watched-check.js';

/** A key, and what the tests of a suite do with it. */
export interface KeyUnderTest {
  /** The harness of the current test. It is closed after the test. */
  readonly harness: LimiterHarness;
  /** Every test has a harness of its own, to which the key is new. */
  readonly key: string;
  /** Goes on with another harness. */
  readonly restart: (limits: LimitsOfKeys, bounds: Partial<InstanceBounds>) => Promise<void>;
  /** Sends a check, which does not wait unless `terms` say so. */
  readonly check: (terms?: Partial<CheckRequest>) => Promise<Decision>;
  readonly outcome: (terms?: Partial<CheckRequest>) => Promise<string>;
  /** Sends a check that must be approved. @returns its request id */
  readonly approve: (terms?: Partial<CheckRequest>) => Promise<string>;
  /** Sends a check, and returns when the queue has it. */
  readonly wait: (terms?: WaitTerms) => Promise<WatchedCheck>;
  readonly release: (requestId: string) => Promise<boolean>;
  readonly inspect: () => Promise<InstanceState | undefined>;
}

/** Gives the tests of a `describe` a key, and each of them a harness. */
export function useKey(createHarness: HarnessFactory, limits: LimitsOfKeys): KeyUnderTest {
  let current: LimiterHarness;
  let isClosed = true;
  const start = async (...parts: Parameters<HarnessFactory>): Promise<void> => {
    current = await createHarness(...parts);
    isClosed = false;
  };
  const close = async (): Promise<void> => {
    if (isClosed) return;
    isClosed = true;
    await current.close();
  };
  beforeEach(() => start(limits));
  afterEach(close);

  const key = uniqueKey();
  const check = (terms: Partial<CheckRequest> = {}): Promise<Decision> =>
    current.limiter.check({ key, canWait: false, ...terms });
  return {
    harness: {
      get limiter() {
        return current.limiter;
      },
      now: () => current.now(),
      advance: (millis) => current.advance(millis),
      quiet: () => current.quiet(),
      unclaimed: () => current.unclaimed(),
      ties: () => current.ties(),
      close,
    },
    key,
    restart: async (...parts) => {
      await close();
      await start(...parts);
    },
    check,
    outcome: async (terms) => (await check(terms)).outcome,
    approve: async (terms) => requestIdOf(await check(terms)),
    wait: (terms) => startWaiting(current.limiter, key, terms),
    release: (requestId) => current.limiter.ask('release', { key, requestId }),
    inspect: () => current.limiter.ask('inspect', { key }),
  };
}
