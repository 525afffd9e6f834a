import { UnavailableError } from '../../../src/limiter/errors.js';
import type {
  Decision,
  Holding,
  InstanceDetail,
  Peek,
  Quota,
} from '../../../src/limiter/limiter.js';

/** What a promise resolves to, or the error that it rejects with. */
export async function settled<Value>(promise: Promise<Value>): Promise<Value | Error> {
  try {
    return await promise;
  } catch (error) {
    return error as Error;
  }
}

/** What a peek and a check have in common. A check that takes nothing leaves the quota as a peek sees it. */
export function outcomeOf(result: Peek | Decision | Error): unknown {
  if (result instanceof UnavailableError) return result.reason;
  if (result instanceof Error) throw result;
  return result.outcome === 'denied'
    ? { reason: result.reason, quota: result.quota }
    : result.outcome;
}

/** Leaves out until when limits are full. */
export function withoutResets({ limits }: Quota): unknown {
  return limits.map((limit) => ({ ...limit, resetMillis: undefined }));
}

/** Leaves out the handles, which differ as the request ids do, and the order that follows from them. */
export function withoutHandles(holdings: readonly Holding[]): string[] {
  return holdings
    .map(({ holder, heldMillis, lapseMillis, hits }) =>
      JSON.stringify({ holder, heldMillis, lapseMillis, hits }),
    )
    .sort();
}

/** Leaves out what only one of the limiters has: the names of the key, of replicas and in the store, and leases. */
export function withoutNames(detail: InstanceDetail): unknown {
  return {
    ...detail,
    key: undefined,
    names: undefined,
    queue: detail.queue.map(({ waitedMillis }) => waitedMillis),
    replicas: detail.replicas.reduce((sum, { places }) => sum + places, 0),
  };
}
