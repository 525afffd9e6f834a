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

/** Calls scripts once and without a time limit, where what they do is tested and not outages. */
export const unguarded = guardThatSends(1);

/** The same for calls that may have run before. */
export const sentAgain = guardThatSends(2);

/** Nobody looks. */
export const unobserved = {
  called: () => undefined,
  batched: () => undefined,
  breakersOpen: () => undefined,
  catchingUp: () => undefined,
};
