import type { QueueList } from '../../../src/limiter/queue-order.js';
import { group, lane } from '../instance-in-memory.js';
import type { HarnessFactory } from '../limiter-harness.js';
import type { DeclaredLimits } from '../limits.js';
import { useKey } from './use-key.js';

const BATCH = lane('batch');
const INTERACTIVE = lane('interactive', 30_000);

/** One approval of the batch lane in 10 s. */
function withShare(maxRequests: number): DeclaredLimits {
  const ofShare = { name: 'share', windowMillis: 10_000, maximum: 1, counts: 'hits' } as const;
  const further = [{ ...ofShare, keepsReleased: false, lanes: ['batch'] }];
  return { windowMillis: 1000, maxRequests, maxRequestsInQueue: 10, further };
}

/** The behaviour of every limiter for newcomers, while only a limit of some lanes stops those who wait there. */
export function describeLaneLimits(name: string, createHarness: HarnessFactory): void {
  describe(`limits of some lanes: ${name}`, () => {
    let limits: DeclaredLimits;
    const { harness, key, outcome, approve, wait, inspect } = useKey(createHarness, () => limits);
    beforeEach(() => {
      limits = withShare(4);
    });
    const peek = async (list?: QueueList): Promise<string> =>
      (await harness.limiter.ask('peek', { key, list })).outcome;
    const fillShare = async (): Promise<void> => {
      await approve({ list: BATCH });
      await wait({ list: BATCH });
    };

    test.each<[string, QueueList | undefined]>([
      ['of another lane', INTERACTIVE],
      ['without a lane', undefined],
      ['of a group', group('batch')],
    ])('a check %s does not wait for the share of a lane', async (_, list) => {
      await fillShare();
      expect(await peek(list)).toBe('approved');
      expect(await outcome({ list })).toBe('approved');
      expect(await outcome({ list, canWait: true })).toBe('approved');
      expect(await outcome({ list: BATCH })).toBe('denied');
      expect(await inspect()).toMatchObject({ waiting: 1, limits: [{ used: 3 }, { used: 1 }] });
    });

    test('a refund is of the limits that count its lane', async () => {
      await approve({ list: BATCH });
      const used = async () => (await inspect())?.limits.map((limit) => limit.used);
      await approve({ list: INTERACTIVE, hits: 2 });
      expect(await harness.limiter.ask('refund', { key, hits: 1, list: INTERACTIVE })).toBe(1);
      expect(await used()).toEqual([2, 1]);
      expect(await harness.limiter.ask('refund', { key, hits: 1, list: BATCH })).toBe(1);
      expect(await used()).toEqual([1, 0]);
    });

    test.each<[string, QueueList | undefined]>([
      ['of another lane', lane('other')],
      ['without a lane', undefined],
      ['of a group', group('batch')],
    ])('room for one is given to a waiter %s, not kept for the share', async (_, list) => {
      limits = withShare(1);
      await fillShare();
      const waits = await wait({ list });
      await harness.advance(1000);
      expect((await waits.decision).outcome).toBe('approved');
    });

    test.each<[string, QueueList | undefined]>([
      ['without a lane', undefined],
      ['of a group', group('a')],
    ])('a check %s passes no lane that lacks room in a limit of all', async (_, list) => {
      await fillShare();
      await wait({ list: INTERACTIVE, hits: 4 });
      expect(await peek(list)).toBe('denied');
      expect(await outcome({ list })).toBe('denied');
    });

    test.each<[string, QueueList | undefined]>([
      ['without a lane', undefined],
      ['of the group', group('a')],
    ])('a check %s passes no head of a group that lacks room', async (_, list) => {
      await fillShare();
      await wait({ list: group('a'), hits: 4 });
      expect(await peek(list)).toBe('denied');
      expect(await outcome({ list })).toBe('denied');
      // Lanes have had waiters for longer.
      expect(await outcome({ list: INTERACTIVE })).toBe('approved');
    });

    test('a check that takes the last room leaves nobody to wait for the share but its lane', async () => {
      limits = withShare(2);
      await fillShare();
      // Together, so that nobody is served in between.
      const last = outcome({ list: INTERACTIVE });
      const tooLate = outcome({ canWait: true, maxWaitMillis: 999 });
      const waits = outcome({ canWait: true, maxWaitMillis: 1000 });
      expect([await last, await tooLate]).toEqual(['approved', 'denied']);
      await harness.advance(1000);
      expect(await waits).toBe('approved');
    });
  });
}
