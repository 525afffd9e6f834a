import { StoreUnavailableError } from '../../../src/limiter/errors.js';
import type { StoreCondition } from '../../../src/limiter/limiter.js';
import type { Assessment } from '../../../src/readiness/readiness.js';
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

/** Of a service that does not listen yet. */
function createEarly(readyDuringOutage = false): ServiceReadiness {
  return new ServiceReadiness({
    limiter,
    eventLoop,
    evictionPolicy: () => evictionPolicy,
    readyDuringOutage,
  });
}

function create(readyDuringOutage = false): ServiceReadiness {
  const readiness = createEarly(readyDuringOutage);
  readiness.startServing();
  return readiness;
}

/** An assessment during which the store answers its next ping. */
function assess(readiness: ServiceReadiness, answer: StoreCondition | Error): Promise<Assessment> {
  const before = limiter.pings.length;
  const assessment = readiness.assess();
  const { resolve, reject } = limiter.pings[before]!;
  if (answer instanceof Error) reject(answer);
  else resolve(answer);
  return assessment;
}

test('there is no reason when the store answers and the event loop keeps up', async () => {
  expect(await assess(create(), 'ok')).toEqual({ reasons: [], remarks: [] });
});

test('all reasons are given', async () => {
  eventLoop.reason = DELAYED;
  const { reasons } = await assess(create(), new StoreUnavailableError());
  expect(reasons).toEqual([DELAYED, 'store unavailable']);
});

test('a full store is a remark, not a reason', async () => {
  const remarks = ['store full: checks of new keys fail'];
  expect(await assess(create(), 'full')).toEqual({ reasons: [], remarks });
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
  const first = await assess(readiness, new StoreUnavailableError());
  expect(first.reasons).toEqual(['store unavailable']);
  expect((await assess(readiness, 'ok')).reasons).toEqual([]);
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
  const fault = new Error('no such command');
  await expect(assess(readiness, fault)).rejects.toBe(fault);
  expect((await assess(readiness, 'ok')).reasons).toEqual([]);
});

test('readyDuringOutage does not ask the store', async () => {
  eventLoop.reason = DELAYED;

  expect((await create(true).assess()).reasons).toEqual([DELAYED]);
  expect(limiter.pings).toEqual([]);
});

test('a service that does not listen on all ports yet is starting, and does not ask the store', async () => {
  expect((await createEarly().assess()).reasons).toEqual(['starting']);
  expect(limiter.pings).toEqual([]);
});

test('a service that drains says so, and does not ask the store', async () => {
  eventLoop.reason = DELAYED;
  const readiness = create();
  readiness.startDraining();

  expect((await readiness.assess()).reasons).toEqual(['draining']);
  expect(limiter.pings).toEqual([]);
});
