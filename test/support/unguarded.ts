import type { CallGuard } from '../../src/redis/availability/call-guard.js';
import { toLimiterError } from '../../src/redis/availability/store-errors.js';

type Guard = Pick<CallGuard, 'run'>;

function guardThatSends(attempt: number): Guard {
  return {
    run: async (call) => {
      try {
        return await call.send(attempt, () => true);
      } catch (error) {
        throw toLimiterError(error);
      }
    },
  };
}

/** Calls scripts once and without a time limit, for tests of the scripts themselves and not of outages. */
export const unguarded = guardThatSends(1);

/** Calls scripts like a repeated call that may have run before. */
export const sentAgain = guardThatSends(2);

/** An observer that records nothing. */
export const unobserved = {
  called: () => undefined,
  batched: () => undefined,
  breakersOpen: () => undefined,
  catchingUp: () => undefined,
  unclaimed: () => undefined,
};
