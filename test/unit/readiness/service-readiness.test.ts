import { StoreUnavailableError } from '../../../src/limiter/errors.js';
import { ServiceReadiness } from '../../../src/readiness/service-readiness.js';

const DELAYED = 'event loop delayed by 300 ms';

/** A store whose pings are answered by the test. */
class StoreStub {
  readonly pings: { resolve: () => void; reject: (error: Error) => void }[] = [];

  ping(): Promise<void> {
    return new Promise((resolve, reject) => this.pings.push({ resolve, reject }));
  }
}

let limiter: StoreStub;
let eventLoop: { reason: string | undefined };
beforeEach(() => {
  limiter = new StoreStub();
  eventLoop = { reason: undefined };
});

function create(readyDuringOutage = false): ServiceReadiness {
  return new ServiceReadiness({ limiter, eventLoop, readyDuringOutage });
}

test('there is no reason when the store answers and the event loop keeps up', async () => {
  const reasons = create().reasons();
  limiter.pings[0]!.resolve();

  expect(await reasons).toEqual([]);
});

test('all reasons are given', async () => {
  eventLoop.reason = DELAYED;
  const reasons = create().reasons();
  limiter.pings[0]!.reject(new StoreUnavailableError());

  expect(await reasons).toEqual([DELAYED, 'store unavailable']);
});

test('the store is asked anew when it has answered', async () => {
  const readiness = create();
  const first = readiness.reasons();
  limiter.pings[0]!.reject(new StoreUnavailableError());
  expect(await first).toEqual(['store unavailable']);
  const second = readiness.reasons();
  limiter.pings[1]!.resolve();

  expect(await second).toEqual([]);
});

test('the store is asked once for all who ask meanwhile', async () => {
  const readiness = create();
  const reasons = Promise.all([readiness.reasons(), readiness.reasons(), readiness.reasons()]);
  limiter.pings[0]!.reject(new StoreUnavailableError());

  expect(await reasons).toEqual(Array.from({ length: 3 }, () => ['store unavailable']));
  expect(limiter.pings).toHaveLength(1);
});

test('a fault of ours is not taken for an outage', async () => {
  const readiness = create();
  const reasons = readiness.reasons();
  limiter.pings[0]!.reject(new Error('no such command'));

  await expect(reasons).rejects.toThrow('no such command');
  const next = readiness.reasons();
  limiter.pings[1]!.resolve();
  expect(await next).toEqual([]);
});

test('with readyDuringOutage the store is not even asked', async () => {
  eventLoop.reason = DELAYED;

  expect(await create(true).reasons()).toEqual([DELAYED]);
  expect(limiter.pings).toEqual([]);
});

test('one that drains says so, and asks nobody', async () => {
  eventLoop.reason = DELAYED;
  const readiness = create();
  readiness.startDraining();

  expect(await readiness.reasons()).toEqual(['draining']);
  expect(limiter.pings).toEqual([]);
});
