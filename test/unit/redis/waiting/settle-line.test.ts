import { SettleLine, type Unsettled } from '../../../../src/redis/waiting/settle-line.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { until } from '../../../support/until.js';

/** A queue whose settle calls the test ends. */
class TestQueue implements Unsettled {
  calls = 0;
  refusals = 0;
  #end: (() => void) | undefined;

  constructor(readonly name: string) {}

  settle(): Promise<void> {
    this.calls += 1;
    underWay.add(this);
    return new Promise((resolve) => (this.#end = resolve));
  }

  notAsked(): void {
    this.refusals += 1;
  }

  /** @param isAnswered false if the call failed */
  async end(isAnswered = true): Promise<void> {
    underWay.delete(this);
    if (!isAnswered) line.joinLater(this);
    this.#end?.();
    await new Promise((resolve) => setImmediate(resolve));
  }
}

let underWay: Set<TestQueue>;
let isAvailable: boolean;
let undone: number[];
let told: Set<string>;
let clock: ManualClock;
let line: SettleLine;
beforeEach(() => {
  underWay = new Set();
  isAvailable = true;
  undone = [];
  told = new Set();
  clock = new ManualClock(0);
  line = new SettleLine({
    clock,
    isAvailable: () => isAvailable,
    observer: {
      catchingUp: (what, count) => {
        told.add(what);
        undone.push(count);
      },
    },
  });
});

function join(count: number): TestQueue[] {
  const queues = Array.from({ length: count }, (_, i) => new TestQueue(`{k${i}}`));
  for (const queue of queues) line.join(queue);
  return queues;
}

const called = (queues: readonly TestQueue[]): number =>
  queues.reduce((sum, { calls }) => sum + calls, 0);

test('a single queue is settled at once', async () => {
  const [queue] = join(1);
  expect(queue!.calls).toBe(1);
  await queue!.end();
  expect(undone).toEqual([]);
});

test('sixteen queues are settled at a time, first come, first served', async () => {
  const queues = join(20);
  expect(queues.map(({ calls }) => calls)).toEqual(queues.map((_, i) => (i < 16 ? 1 : 0)));
  await queues[3]!.end();
  expect(queues.map(({ calls }) => calls)).toEqual(queues.map((_, i) => (i < 17 ? 1 : 0)));
});

test('20,000 queues are settled, never more than sixteen at a time', async () => {
  const queues = join(20_000);
  while (underWay.size > 0) {
    expect(underWay.size).toBeLessThanOrEqual(16);
    await Promise.all([...underWay].map((queue) => queue.end()));
  }
  expect([called(queues), undone.at(-1)]).toEqual([20_000, 0]);
  expect([...told]).toEqual(['settle']);
});

test('a queue that is over is not settled', async () => {
  const queues = join(18);
  line.leave(queues[16]!);
  await queues[0]!.end();
  expect([queues[16]!.calls, queues[17]!.calls]).toEqual([0, 1]);
});

test('queues whose calls failed wait for one timer, longer each time', async () => {
  const queues = join(3);
  for (const [attempt, delay] of [50, 100, 200, 250, 250].entries()) {
    for (const queue of queues) await queue.end(false);
    expect(undone.at(-1)).toBe(3);
    await clock.advance(delay - 1);
    expect(called(queues)).toBe(3 * (attempt + 1));
    await clock.advance(1);
    expect(called(queues)).toBe(3 * (attempt + 2));
  }
  for (const queue of queues) await queue.end();
  line.join(queues[0]!);
  await queues[0]!.end(false);
  await clock.advance(50);
  expect(underWay.has(queues[0]!)).toBe(true);
});

test('other queues go on after the call of one has failed', async () => {
  const [failing, other] = join(2);
  await failing!.end(false);
  await other!.end();
  line.join(other!);
  expect(other!.calls).toBe(2);
});

test('a queue that joins again after a failure does not wait for the timer', async () => {
  const [queue] = join(1);
  await queue!.end(false);
  line.join(queue!);
  expect(queue!.calls).toBe(2);
  await queue!.end();
  await clock.advance(100_000);
  expect(queue!.calls).toBe(2);
});

test('no queue is settled while the store is known to be down, and all are when it is back', async () => {
  isAvailable = false;
  const queues = join(1000);
  await clock.advance(10_000);
  expect([called(queues), undone.at(-1)]).toEqual([0, 1000]);
  expect(queues.every(({ refusals }) => refusals > 10)).toBe(true);
  isAvailable = true;
  line.onStoreAvailable();
  while (underWay.size > 0) await [...underWay][0]!.end();
  await until(() => undone.at(-1) === 0);
  expect(called(queues)).toBe(1000);
});

test('a queue that is over after a failure is not settled again', async () => {
  const [queue] = join(1);
  await queue!.end(false);
  line.leave(queue!);
  await clock.advance(100_000);
  expect([undone.at(-1), queue!.calls]).toEqual([0, 1]);
});
