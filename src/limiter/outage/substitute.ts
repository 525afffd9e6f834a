import { randomUUID } from 'node:crypto';

import type { CallerPresence } from '../caller-presence.js';
import {
  type Amended,
  type Amendment,
  type CheckRequest,
  type Decision,
  isVerdict,
  type Limiter,
  type Peek,
  type PeekRequest,
  type RejectedAmendment,
  type ReleaseOptions,
} from '../limiter.js';

/** Decides while the store is down. */
export interface Substitute {
  /** The limiter of a substitute that keeps keys. */
  readonly limiter?: Limiter;
  readonly waiting: number;
  check(request: CheckRequest, caller?: CallerPresence): Promise<Decision>;
  /** @returns false if the substitute gave no such approval, or does not remember it */
  release(key: string, requestId: string, options?: ReleaseOptions): Promise<boolean>;
  /** @returns undefined where `release` returns false */
  amend(
    key: string,
    requestId: string,
    amendment: Amendment,
  ): Promise<Amended | RejectedAmendment | undefined>;
  peek(request: PeekRequest): Promise<Peek>;
  close(): Promise<void>;
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
    close: () => limiter.close(),
  };
}
