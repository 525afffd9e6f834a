import { randomUUID } from 'node:crypto';

import { isVerdict, type Limiter } from '../limiter.js';

/** Decides while the store is down. It knows no approval that the store gave, and no request that the store has. */
export interface Substitute extends Pick<
  Limiter,
  'waiting' | 'check' | 'release' | 'amend' | 'peek' | 'statusOf' | 'close'
> {
  /** The limiter of a substitute that keeps keys. */
  readonly limiter?: Limiter;
}

/** Approves everything, and keeps nothing. */
export const allowAll: Substitute = {
  waiting: 0,
  check: ({ requestId = randomUUID() }) =>
    Promise.resolve({
      outcome: 'approved',
      requestId,
      outagePolicy: 'allow' as const,
    }),
  release: () => Promise.resolve(false),
  amend: () => Promise.resolve(undefined),
  peek: () => Promise.resolve({ outcome: 'approved', outagePolicy: 'allow' }),
  statusOf: () => Promise.resolve(undefined),
  close: () => Promise.resolve(),
};

/** This replica decides alone. It applies every limit in full to the checks that it gets in the outage. */
export function decideLocally(limiter: Limiter): Substitute {
  return {
    limiter,
    get waiting() {
      return limiter.waiting;
    },
    check: async (request, caller) => {
      const decision = await limiter.check(request, caller);
      return isVerdict(decision) ? { ...decision, outagePolicy: 'local' } : decision;
    },
    release: (key, requestId, options) => limiter.release(key, requestId, options),
    amend: (key, requestId, amendment) => limiter.amend(key, requestId, amendment),
    peek: async (request) => ({ ...(await limiter.peek(request)), outagePolicy: 'local' }),
    statusOf: (key, requestId) => limiter.statusOf(key, requestId),
    close: () => limiter.close(),
  };
}
