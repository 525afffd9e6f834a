import { randomUUID } from 'node:crypto';

import type { CallerPresence } from '../caller-presence.js';
import type { CheckRequest, Decision, Limiter } from '../limiter.js';

/** What decides while the store can't be asked. */
export interface Substitute {
  /** Where there is one that knows its keys. */
  readonly limiter?: Limiter;
  readonly waiting: number;
  check(request: CheckRequest, caller?: CallerPresence): Promise<Decision>;
  /** @returns false where it gave no such approval, or does not remember */
  release(key: string, requestId: string): Promise<boolean>;
  close(): Promise<void>;
}

/** Approves everything, and remembers nothing. */
export const allowAll: Substitute = {
  waiting: 0,
  check: () =>
    Promise.resolve({ outcome: 'approved', requestId: randomUUID(), policy: 'allow' as const }),
  release: () => Promise.resolve(false),
  close: () => Promise.resolve(),
};

/** This replica decides for itself, with the whole of every limit, by what it has seen in the outage. */
export function decideLocally(limiter: Limiter): Substitute {
  return {
    limiter,
    get waiting() {
      return limiter.waiting;
    },
    check: async (request, caller) => {
      const decision = await limiter.check(request, caller);
      return decision.outcome === 'withdrawn' ? decision : { ...decision, policy: 'local' };
    },
    release: (key, requestId) => limiter.release(key, requestId),
    close: () => limiter.close(),
  };
}
