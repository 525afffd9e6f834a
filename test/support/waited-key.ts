import { approve, ratePath, send } from './http-client.js';
import { type RateRequest, waitInTurn } from './rate-client.js';
import { until } from './until.js';

/** A key with a maximum of 1, the id of its approval, and its waiters in their order. */
export interface WaitedKey {
  readonly key: string;
  readonly approved: string;
  readonly waiters: readonly RateRequest[];
}

/** Approves one check, and adds waiters at the replicas in turn. */
export async function waitFor(
  replicas: readonly { readonly url: string }[],
  key: string,
  count: number,
): Promise<WaitedKey> {
  const approved = await approve(replicas[0]!.url, key, '?maxRequests=1');
  return { key, approved, waiters: await waitInTurn(replicas, key, count) };
}

/**
 * Releases one approval after the other, and expects each waiter to be served in its turn.
 * @param url of the replica that releases
 * @returns the statuses of the releases
 */
export async function serveInTurn(
  url: string,
  { key, approved, waiters }: WaitedKey,
): Promise<Set<number>> {
  const statuses = new Set<number>();
  let requestId = approved;
  for (const waiter of waiters) {
    let isServed = false;
    waiter.answer.then(
      () => (isServed = true),
      () => undefined,
    );
    // A release that got a 503 may still have run.
    await until(async () => {
      const { status } = await send(url, 'DELETE', `${ratePath(key)}/${requestId}`);
      statuses.add(status);
      return status === 200 || isServed;
    });
    const served = await waiter.answer;
    expect(served.status).toBe(200);
    requestId = served.requestId!;
  }
  return statuses;
}
