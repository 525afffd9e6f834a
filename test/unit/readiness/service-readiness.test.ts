import { StoreUnavailableError } from '../../../src/limiter/errors.js';
import type { StoreCondition } from '../../../src/limiter/limiter.js';
import { ServiceReadiness } from '../../../src/readiness/service-readiness.js';

const DELAYED = 'event loop delayed by 300 ms';

/** A store whose pings are answered by the test. */
class StoreStub {
  readonly pings: {
    resolve: (condition: StoreCondition) => void;
    reject: (error: Error) => void;
  }[] = [];

  ping(): Promise<StoreCondition> {
    return new Promise((resolve, reject) => this.pings.push({ resolve, reject }));
  }
}

let limiter: StoreStub;
let eventLoop: { reason: string | undefined };
let evictionPolicy: string | undefined;
beforeEach(() => {
  limiter = new StoreStub();
  eventLoop = { reason: undefined };
  evictionPolicy = undefined;
});

function create(readyDuringOutage = false): ServiceReadiness {
  const readiness = new ServiceReadiness({
    limiter,
    eventLoop,
    evictionPolicy: () => evictionPolicy,
    readyDuringOutage,
  });
  readiness.startServing();
  return readiness;
}

test('there is no reason when the store answers and the event loop keeps up', async () => {
  const assessment = create().assess();
  limiter.pings[0]!.resolve('ok');

  expect(await assessment).toEqual({ reasons: [], remarks: [] });
});

test('all reasons are given', async () => {
  eventLoop.reason = DELAYED;
  const assessment = create().assess();
  limiter.pings[0]!.reject(new StoreUnavailableError());

  expect((await assessment).reasons).toEqual([DELAYED, 'store unavailable']);
});

test('a full store is a remark, not a reason', async () => {
  const assessment = create().assess();
  limiter.pings[0]!.resolve('full');

  expect(await assessment).toEqual({
    reasons: [],
    remarks: ['store full: checks of new keys fail'],
  });
});

test('a store that may evict keys is a remark, not a reason, also if an outage is none', async () => {
  evictionPolicy = 'allkeys-lru';
  expect(await create(true).assess()).toEqual({
    reasons: [],
    remarks: ['store may evict keys by allkeys-lru, and limits with them: set noeviction'],
  });
});

test('the store is asked again when it has answered', async () => {
  const readiness = create();
  const first = readiness.assess();
  limiter.pings[0]!.reject(new StoreUnavailableError());
  expect((await first).reasons).toEqual(['store unavailable']);
  const second = readiness.assess();
  limiter.pings[1]!.resolve('ok');

  expect((await second).reasons).toEqual([]);
});

test('concurrent assessments share one ping of the store', async () => {
  const readiness = create();
  const assessments = Promise.all([readiness.assess(), readiness.assess(), readiness.assess()]);
  limiter.pings[0]!.reject(new StoreUnavailableError());

  const reasons = (await assessments).map((assessment) => assessment.reasons);
  expect(reasons).toEqual(Array.from({ length: 3 }, () => ['store unavailable']));
  expect(limiter.pings).toHaveLength(1);
});

test('a fault of Sluice is not taken for an outage', async () => {
  const readiness = create();
  const assessment = readiness.assess();
  limiter.pings[0]!.reject(new Error('no such command'));

  await expect(assessment).rejects.toThrow('no such command');
  const next = readiness.assess();
  limiter.pings[1]!.resolve('ok');
  expect((await next).reasons).toEqual([]);
});

test('readyDuringOutage does not ask the store', async () => {
  eventLoop.reason = DELAYED;

  expect((await create(true).assess()).reasons).toEqual([DELAYED]);
  expect(limiter.pings).toEqual([]);
});

test('a service that does not listen on all ports yet is starting, and does not ask the store', async () => {
  const readiness = new ServiceReadiness({
    limiter,
    eventLoop,
    evictionPolicy: () => undefined,
    readyDuringOutage: false,
  });

  expect((await readiness.assess()).reasons).toEqual(['starting']);
  expect(limiter.pings).toEqual([]);
});

test('a service that drains says so, and does not ask the store', async () => {
  eventLoop.reason = DELAYED;
  const readiness = create();
  readiness.startDraining();

  expect((await readiness.assess()).reasons).toEqual(['draining']);
  expect(limiter.pings).toEqual([]);
});
