import type { CallGuard } from '../../src/redis/availability/call-guard.js';
import { toLimiterError } from '../../src/redis/availability/store-errors.js';

/** Calls scripts once and without a time limit, where what they do is tested and not outages. */
export const unguarded: Pick<CallGuard, 'run'> = {
  run: async (call) => {
    try {
      return await call.send(1);
    } catch (error) {
      throw toLimiterError(error);
    }
  },
};

/** Nobody looks. */
export const unobserved = {
  called: () => undefined,
  batched: () => undefined,
  breakersOpen: () => undefined,
};
