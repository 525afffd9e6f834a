import { randomUUID } from 'node:crypto';

import type { RequestStatus } from '../../../src/limiter/limiter.js';
import type { HarnessFactory } from '../limiter-harness.js';
import type { DeclaredLimits } from '../limits.js';
import type { WaitTerms } from '../watched-check.js';
import { useKey } from './use-key.js';

/** Three of them are two leases of a replica, for which the limiter on Redis remembers a request at least. */
const WINDOW = 4000;
const LIMITS: DeclaredLimits = { windowMillis: WINDOW, maxRequests: 2, maxRequestsInQueue: 9 };
const APPROVED = { status: 'approved' };

/** The behaviour of every limiter for questions what a request is. */
export function describeStatuses(name: string, createHarness: HarnessFactory): void {
  describe(`the status of a request: ${name}`, () => {
    let limits = LIMITS;
    const key = useKey(createHarness, () => limits);
    const { harness, restart, approve, wait, release, inspect } = key;
    beforeEach(() => {
      limits = LIMITS;
    });
    const statusOf = (id: string): Promise<RequestStatus | undefined> =>
      harness.limiter.ask('statusOf', { key: key.key, requestId: id });
    const fill = async (): Promise<string[]> => [await approve(), await approve()];
    /** Lets a request wait whose caller has chosen its id. */
    const waitFor = async (terms: WaitTerms = {}): Promise<string> => {
      const requestId = randomUUID();
      await wait({ requestId, ...terms });
      return requestId;
    };
    /** Position and turn of each request that waits. */
    const places = (ids: readonly string[]): Promise<unknown> =>
      Promise.all(
        ids.map(async (id) => {
          const status = await statusOf(id);
          return status?.status === 'waiting' ? [status.position, status.waitMillis] : status;
        }),
      );

    test('of an unknown id is nothing, and makes no key', async () => {
      expect(await statusOf(randomUUID())).toBeUndefined();
      expect(await inspect()).toBeUndefined();
      await approve();
      expect(await statusOf(randomUUID())).toBeUndefined();
    });

    test('of an approval with an id of Sluice is approved for as long as it counts', async () => {
      const [first, second] = await fill();
      expect(await statusOf(first!)).toEqual(APPROVED);
      await release(first!);
      await harness.advance(WINDOW - 1);
      expect([await statusOf(first!), await statusOf(second!)]).toEqual([undefined, APPROVED]);
      await harness.advance(1);
      expect(await statusOf(second!)).toBeUndefined();
    });

    test('of an approval with a chosen id is approved for as long as a check with it gets that', async () => {
      const [id, released] = [randomUUID(), randomUUID()];
      await approve({ requestId: id });
      await approve({ requestId: released });
      await release(released);
      await harness.advance(WINDOW);
      expect([await statusOf(id), await statusOf(released)]).toEqual([APPROVED, undefined]);
      expect(await approve({ requestId: id })).toBe(id);
      expect(await inspect()).toMatchObject({ limits: [{ used: 0 }] });
    });

    test.each([['of Sluice'], ['of its caller']])(
      'of a held approval with an id %s says when the hold lapses',
      async (whose) => {
        const requestId = whose === 'of Sluice' ? undefined : randomUUID();
        const id = await approve({ requestId, holdMillis: 2.5 * WINDOW });
        await harness.advance(WINDOW);
        expect(await statusOf(id)).toEqual({ ...APPROVED, holdMillis: 1.5 * WINDOW });
        await harness.limiter.ask('amend', { key: key.key, requestId: id, hits: 2 });
        expect(await statusOf(id)).toEqual({ ...APPROVED, holdMillis: 2.5 * WINDOW });
        await harness.advance(2.5 * WINDOW - 1);
        expect(await statusOf(id)).toEqual({ ...APPROVED, holdMillis: 1 });
        await harness.advance(1);
        expect(await statusOf(id)).toBeUndefined();
      },
    );

    test('of a request that waits is its place from the head on, and the earliest turn', async () => {
      await fill();
      const ids = [await waitFor(), await waitFor(), await waitFor(), await waitFor({ hits: 2 })];
      await harness.advance(1000);
      expect(await places(ids)).toEqual([
        [1, 3000],
        [2, 3000],
        [3, 7000],
        [4, 11_000],
      ]);
      await release(ids[1]!);
      expect(await places(ids)).toEqual([[1, 3000], undefined, [2, 3000], [3, 7000]]);
    });

    test('changes nothing, and keeps no key', async () => {
      const id = await approve({ requestId: randomUUID() });
      const before = await inspect();
      expect(await statusOf(id)).toEqual(APPROVED);
      expect(await inspect()).toEqual(before);
      await harness.advance(4 * WINDOW - 1);
      await statusOf(id);
      expect(await inspect()).toMatchObject({ limits: [{ used: 0 }] });
      await harness.advance(1);
      await statusOf(id);
      expect(await inspect()).toBeUndefined();
    });

    test('of a further limit that still counts an approval is approved', async () => {
      const minute = { name: 'minute', counts: 'hits', keepsReleased: false } as const;
      limits = { ...LIMITS, further: [{ ...minute, windowMillis: 60_000, maximum: 9 }] };
      const id = await approve();
      await harness.advance(2 * WINDOW);
      expect(await statusOf(id)).toEqual(APPROVED);
      limits = LIMITS;
      expect(await statusOf(id)).toBeUndefined();
    });

    test.each([
      ['a held approval leaves more requests of a further limit', 'requests', 60_000],
      ['of hits of a further limit one may need no id of its own', 'hits', undefined],
    ] as const)('expects no lack of ids: %s', async (_case, counts, holdMillis) => {
      const few = { name: 'few', windowMillis: 60_000, maximum: 4, keepsReleased: false };
      await restart({ ...LIMITS, further: [{ ...few, counts }] }, { maxIdsPerKey: 3 });
      await approve({ holdMillis });
      await approve();
      expect(await places([await waitFor(), await waitFor()])).toEqual([
        [1, WINDOW],
        [2, WINDOW],
      ]);
    });

    test('takes the rules as a settle would, and brings none into force', async () => {
      await fill();
      const ids = [await waitFor(), await waitFor(), await waitFor()];
      limits = { ...LIMITS, maxRequests: 3 };
      expect(await places(ids)).toEqual([
        [1, 0],
        [2, WINDOW],
        [3, WINDOW],
      ]);
      limits = LIMITS;
      expect(await inspect()).toMatchObject({ limits: [{ maximum: 2 }], waiting: 3 });
    });
  });
}
