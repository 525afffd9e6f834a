import type { QueueList } from '../../../../src/limiter/queue-order.js';
import { extent } from '../../../support/extent.js';
import { InstanceInMemory, lane } from '../../../support/instance-in-memory.js';
import type { DeclaredLimits, FurtherLimit } from '../../../support/limits.js';
import fc from '../../../support/properties.js';

const INTERACTIVE = lane('interactive', 30_000);
const BATCH = lane('batch');

/** A limit that counts the batch lane only. */
const share = (maximum: number, more: Partial<FurtherLimit> = {}): FurtherLimit => ({
  name: 'share',
  windowMillis: 1000,
  maximum,
  counts: 'hits',
  keepsReleased: false,
  lanes: ['batch'],
  ...more,
});
const withShare = (maxRequests: number, further: FurtherLimit): DeclaredLimits => ({
  windowMillis: 1000,
  maxRequests,
  maxRequestsInQueue: 100,
  further: [further],
});

test.each([
  ['fixed window', {}],
  ['sliding window', { algorithm: { name: 'sliding_window', steps: 5 } }],
  ['token bucket', { algorithm: { name: 'token_bucket', burst: 2 } }],
] as const)('a %s of some lanes binds only their checks, whether these wait or not', (_, more) => {
  const key = new InstanceInMemory(withShare(5, share(2, more)));
  expect(key.check('b1', BATCH)).toBe('approved');
  expect(key.check('b2', BATCH, { hits: 2 })).toBe('denied');
  expect(key.check('i1', INTERACTIVE, { hits: 2 })).toBe('approved');
  expect(key.check('b3', BATCH)).toBe('approved');
  expect(key.check('b4', BATCH)).toBe('denied');
  expect(key.wait('b5', BATCH)).toBe('waiting');
  expect(key.check('none')).toBe('approved');
  expect(key.used).toEqual([5, 2]);
});

test('a head that lacks a place for its id stops all lanes, and those without', () => {
  const key = new InstanceInMemory(withShare(9, share(9, { keepsReleased: true })), {
    maxIdsPerKey: 1,
  });
  key.check('held', BATCH, { holdMillis: 500_000 });
  expect(key.wait('b1', BATCH, { holdMillis: 1000 })).toBe('waiting');
  expect(key.check('late', lane('late'), { holdMillis: 1000 })).toBe('denied');
});

test('when waiters may have room next is the earliest time of the heads that are stopped', () => {
  const limits = withShare(9, share(1, { windowMillis: 3000 }));
  const other = share(1, { name: 'other', windowMillis: 2000, lanes: ['interactive'] });
  const key = new InstanceInMemory({ ...limits, further: [...(limits.further ?? []), other] });
  for (const [i, list] of [BATCH, INTERACTIVE].entries()) key.check(`x${i}`, list);
  key.wait('b', BATCH);
  expect(key.instance.turns.exactRoomAt).toBe(3000);
  key.wait('i', INTERACTIVE);
  expect(key.instance.turns.exactRoomAt).toBe(2000);
  expect(key.instance.turns.millisToTurn(0, { list: BATCH })).toBe(6000);
  expect(key.instance.turns.millisToTurn(0, { list: INTERACTIVE })).toBe(4000);
  expect(key.settleAt(2000)).toEqual(['i']);
  expect(key.settleAt(3000)).toEqual(['b']);
});

describe('held approvals', () => {
  const HOLD = { holdMillis: 60_000 };
  const limits = withShare(4, share(2));

  test.each([
    ['fixed window', {}],
    ['sliding window', { algorithm: { name: 'sliding_window', steps: 2 } }],
  ] as const)('count in a %s as long as they are held, by their lanes', (_, more) => {
    const key = new InstanceInMemory(withShare(4, share(2, more)));
    key.check('b1', BATCH, HOLD);
    key.check('b2', BATCH, HOLD);
    key.check('i1', INTERACTIVE, HOLD);
    key.check('i2', INTERACTIVE, { holdMillis: 1200 });
    expect(key.used).toEqual([4, 2]);
    key.now = 1500;
    // Before the hold is ended that has lapsed.
    expect(key.used).toEqual([3, 2]);
    expect(key.check('b3', BATCH)).toBe('denied');
    expect(key.used).toEqual([3, 2]);
    key.release('i1');
    expect(key.check('b3', BATCH)).toBe('denied');
    key.release('b1');
    expect(key.check('b3', BATCH)).toBe('approved');
    expect(key.used).toEqual([2, 2]);
    key.settleAt(5500);
    expect(key.used).toEqual([1, 1]);
    key.now = 60_000;
    // Nothing of it is left, also before it is ended.
    expect(key.used).toEqual([0, 0]);
  });

  test('that nobody has claimed count as those of their lanes, and so do those claimed', () => {
    const key = new InstanceInMemory(limits);
    key.check('b1', BATCH, { hits: 2 });
    expect(key.checkKnown('kept', BATCH, { keepMillis: 5000 })).toBe('waiting');
    expect(key.settleAt(1000)).toEqual(['kept']);
    key.now = 2100;
    key.instance.settle(2100);
    expect(key.used).toEqual([1, 1]);
    expect(key.checkKnown('kept', INTERACTIVE, { keepMillis: 5000 })).toBe('approved');
    expect(key.used).toEqual([1, 1]);
    key.settleAt(3000);
    expect(key.used).toEqual([0, 0]);
  });
});

test('no limit has more than its maximum, and nothing is left unused while a head fits', () => {
  const lists = [lane('first', 700), BATCH, lane('other', 250)];
  const counted = ['batch', 'first'];
  const step = fc.oneof(
    { weight: 5, arbitrary: fc.record({ list: fc.nat({ max: 2 }), hits: fc.nat({ max: 4 }) }) },
    { weight: 2, arbitrary: fc.record({ millis: fc.nat({ max: 700 }) }) },
    { weight: 1, arbitrary: fc.record({ leaves: fc.nat({ max: 9 }) }) },
  );
  const steps = fc.array(step, { maxLength: 80, size: 'max' });
  const maxima = fc.record({
    own: fc.integer({ min: 2, max: 6 }),
    ofShare: fc.integer({ min: 1, max: 6 }),
  });
  interface Waiter {
    readonly name: string;
    readonly list: QueueList;
    readonly hits: number;
    /** In milliseconds: of several with the same, any may be the head. */
    readonly orderKey: number;
  }
  let stopsOfOneLane = 0;
  fc.assert(
    fc.property(steps, maxima, (drawn, { own, ofShare }) => {
      const key = new InstanceInMemory(withShare(own, share(ofShare, { lanes: counted })));
      let waiting: Waiter[] = [];
      let names = 0;
      const isCounted = ({ list }: Waiter): boolean => counted.includes(list.name);
      const expectWorkDone = (): void => {
        const granted = new Set(key.granted.splice(0));
        waiting = waiting.filter(({ name }) => !granted.has(name));
        const [ofOwn = 0, used = 0] = key.used;
        expect([ofOwn <= own, used <= ofShare]).toEqual([true, true]);
        if (waiting.length === 0) return;
        const first = Math.min(...waiting.map(({ orderKey }) => orderKey));
        const heads = waiting.filter(({ orderKey }) => orderKey === first);
        const [room, roomOfShare] = [own - ofOwn, ofShare - used];
        const isStopped = (head: Waiter): boolean =>
          head.hits > room || (isCounted(head) && head.hits > roomOfShare);
        expect(heads.some(isStopped)).toBe(true);
        if (heads.some(({ hits }) => hits > room)) return;
        const other = waiting.find((waiter) => !isCounted(waiter));
        if (!other) return;
        stopsOfOneLane += 1;
        expect(other.hits).toBeGreaterThan(room);
      };
      for (const each of drawn) {
        if ('millis' in each) key.now += each.millis;
        else if ('leaves' in each) {
          const left = waiting[each.leaves];
          waiting = waiting.filter((waiter) => waiter !== left);
          if (left) key.withdraw(left.name);
        } else {
          const list = lists[each.list]!;
          const hits = Math.min(each.hits + 1, own);
          names += 1;
          const name = String(names);
          const headStart = list.kind === 'lane' ? list.headStartMillis : 0;
          const orderKey = key.now - headStart;
          if (key.wait(name, list, { hits }) === 'waiting') {
            waiting.push({ name, list, hits, orderKey });
          }
        }
        key.instance.settle(key.now);
        expectWorkDone();
      }
    }),
    { numRuns: extent(100, 1000) },
  );
  expect(stopsOfOneLane).toBeGreaterThan(0);
});
