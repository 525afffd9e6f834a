import type { QueueList } from '../../../src/limiter/queue-order.js';
import { group } from '../instance-in-memory.js';
import type { HarnessFactory } from '../limiter-harness.js';
import { requestIdOf } from '../request-id-of.js';
import { useKey } from './use-key.js';

const LIMITS = { windowMillis: 1000, maxRequests: 5, maxRequestsInQueue: 10 };
const [A, B] = [group('a'), group('b')];

/** The behaviour of every limiter for newcomers, while the head of a group needs more than is left. */
export function describeGroups(name: string, createHarness: HarnessFactory): void {
  describe(`fair groups: ${name}`, () => {
    const { harness, key, check, outcome, approve, wait, release } = useKey(
      createHarness,
      () => LIMITS,
    );
    /** Two hits are left, and the head needs four. */
    beforeEach(async () => {
      await approve({ list: A, hits: 3 });
      await wait({ list: A, hits: 4 });
    });
    const peek = async (list: QueueList | undefined, hits: number): Promise<string> =>
      (await harness.limiter.ask('peek', { key, list, hits })).outcome;
    const expectTold = async (
      list: QueueList | undefined,
      hits: number,
      told: string,
    ): Promise<void> => {
      expect(await peek(list, hits)).toBe(told);
      const decision = await check({ list, hits });
      expect(decision.outcome).toBe(told);
      if (told === 'approved') await release(requestIdOf(decision));
    };

    test('a check of another group is approved while its tag would be below the tag of the head', async () => {
      await expectTold(B, 2, 'approved');
      await expectTold(B, 2, 'denied');
      await expectTold(B, 1, 'approved');
      await expectTold(B, 1, 'denied');
      await expectTold(group('c', 2), 1, 'approved');
      await expectTold(group('c', 2), 1, 'denied');
      await harness.advance(1000);
      expect(await outcome({ list: B })).toBe('approved');
    });

    test('a check that can wait is approved as well, and leaves no room to those that have it', async () => {
      expect(await outcome({ list: B, canWait: true })).toBe('approved');
      expect(await outcome({ list: B, canWait: true })).toBe('approved');
      expect(await outcome({ list: B, canWait: true, maxWaitMillis: 0 })).toBe('denied');
    });

    test.each([
      ['of the group', A],
      ['without a group', undefined],
    ])('a check %s passes nobody', async (_, list) => {
      await expectTold(list, 1, 'denied');
    });

    test('a check passes no group that has the same tag', async () => {
      await wait({ list: group('c', 2), hits: 4 });
      await expectTold(B, 2, 'denied');
      await expectTold(B, 1, 'approved');
    });
  });
}
