import type { Limiter } from '../../../src/limiter/limiter.js';
import { codesOf, failureOf, of, useGateways } from '../../support/grpc-gateway.js';
import { type GrpcService, useGrpcServices } from '../../support/grpc-service.js';
import { smallLimiter } from '../../support/http-service.js';
import type { LogLine } from '../../support/replica-process.js';
import { StoreLimiterStub } from '../../support/store-limiter-stub.js';
import { until } from '../../support/until.js';
import { quotaOf } from '../../support/quota.js';

const QUOTA = quotaOf(1000);
const FAULT = new TypeError('of the test');

const start = useGrpcServices();
const gatewayOf = useGateways();

const errorsIn = ({ log }: GrpcService): readonly LogLine[] =>
  log.lines.filter(({ level }) => level === 'error');

const ERROR_LINE = {
  level: 'error',
  status: 500,
  errorCode: 'INTERNAL_ERROR',
  err: expect.objectContaining({ message: FAULT.message }) as unknown,
  msg: 'call answered',
};

test.each<[what: string, check: Limiter['check']]>([
  ['rejects', () => Promise.reject(FAULT)],
  [
    'throws',
    () => {
      throw FAULT;
    },
  ],
  ['resolves without a decision', () => Promise.resolve(undefined as never)],
])(
  'a limiter that %s causes an internal error with a log line, not a denial',
  async (_what, check) => {
    const limiter = smallLimiter();
    limiter.check = check;
    const service = await start(limiter);

    expect(await failureOf(gatewayOf(service).askFor('key'))).toEqual([
      'INTERNAL',
      'internal error',
    ]);
    expect(errorsIn(service)).toMatchObject([{ level: 'error', keys: ['key'], status: 500 }]);
  },
);

test('a fault has no log line if LOG_5XX=false', async () => {
  const limiter = smallLimiter();
  limiter.check = () => Promise.reject(FAULT);
  const service = await start(limiter, { environment: { LOG_5XX: 'false' } });
  await failureOf(gatewayOf(service).askFor('key'));

  expect(errorsIn(service)).toEqual([]);
});

/** Asks for three keys, which the test decides. */
async function askForThree() {
  const limiter = new StoreLimiterStub();
  const service = await start(limiter);
  const gateway = gatewayOf(service);
  const call = gateway.begin({ descriptors: [of('a'), of('b'), of('c')] });
  await until(() => limiter.asked.length === 3);
  const waiters = limiter.asked.map(({ waiter }) => waiter);
  return { limiter, service, gateway, call, waiters };
}

test('a fault of one descriptor gives back the approvals of the others', async () => {
  const { limiter, service, call, waiters } = await askForThree();
  waiters[0]!.approve(QUOTA);
  waiters[1]!.fail(FAULT);
  waiters[2]!.approve(QUOTA);

  expect(await failureOf(call.answer)).toEqual(['INTERNAL', 'internal error']);
  expect(limiter.released).toEqual([waiters[0]!.requestId, waiters[2]!.requestId]);
  expect(errorsIn(service)).toMatchObject([ERROR_LINE]);
});

test('a fault of one descriptor is logged if another is denied, and the answer is the denial', async () => {
  const { limiter, service, call, waiters } = await askForThree();
  waiters[0]!.fail(FAULT);
  waiters[1]!.decide({ outcome: 'denied', reason: 'limit_reached', quota: QUOTA });
  waiters[2]!.approve(QUOTA);

  expect(codesOf(await call.answer)).toEqual(['UNKNOWN', 'OVER_LIMIT', 'OK']);
  expect(limiter.released).toEqual([waiters[2]!.requestId]);
  expect(errorsIn(service)).toMatchObject([
    { msg: 'descriptor not decided', err: { message: FAULT.message } },
  ]);
});

test('hits that can not be given back are a fault, and the approvals of the others are given back', async () => {
  const limiter = new StoreLimiterStub();
  limiter.refund = () => Promise.reject(FAULT);
  const service = await start(limiter);
  const refund = of('b', { hits_addend: { value: 3 }, is_negative_hits: true });
  const call = gatewayOf(service).begin({ descriptors: [refund, of('a')] });
  await until(() => limiter.asked.length === 1);
  const { waiter } = limiter.asked[0]!;
  waiter.approve(QUOTA);

  expect(await failureOf(call.answer)).toEqual(['INTERNAL', 'internal error']);
  expect(limiter.released).toEqual([waiter.requestId]);
});

test('all descriptors are given back if the gateway gives up while they are decided', async () => {
  const { limiter, service, gateway, call, waiters } = await askForThree();
  waiters[0]!.approve(QUOTA);
  call.cancel();
  expect((await failureOf(call.answer))[0]).toBe('CANCELLED');
  // When a later call on the connection is answered, the service has read the end of the first.
  const other = gateway.begin({ descriptors: [of('d')] });
  await until(() => limiter.asked.length === 4);
  limiter.asked[3]!.waiter.approve(QUOTA);
  await other.answer;
  waiters[1]!.approve(QUOTA);
  waiters[2]!.approve(QUOTA);
  await until(() => limiter.released.length === 3);

  expect(limiter.released).toEqual(waiters.slice(0, 3).map(({ requestId }) => requestId));
  expect(service.log.lines.filter(({ status }) => status === 499)).toMatchObject([
    { level: 'debug', keys: ['a', 'b', 'c'] },
  ]);
});

test('an approval that can not be given back has a log line, and the answer stays', async () => {
  const { limiter, service, call, waiters } = await askForThree();
  limiter.release = () => Promise.reject(FAULT);
  waiters[0]!.approve(QUOTA);
  waiters[1]!.decide({ outcome: 'denied', reason: 'limit_reached', quota: QUOTA });
  waiters[2]!.approve(QUOTA);

  expect(codesOf(await call.answer)).toEqual(['OK', 'OVER_LIMIT', 'OK']);
  expect(service.log.messages).toEqual(
    expect.arrayContaining(['approval that nobody uses not released']),
  );
});

test("a descriptor's approval is given back if the deadline passes while it is decided", async () => {
  const limiter = new StoreLimiterStub();
  const service = await start(limiter);
  const gateway = gatewayOf(service);
  // On a busy machine a call may need longer to reach Sluice than a short deadline allows.
  for (let timeoutMillis = 50; limiter.asked.length === 0; timeoutMillis *= 2) {
    const asked = gateway.ask({ descriptors: [of('key')], hits_addend: 2 }, { timeoutMillis });
    expect((await failureOf(asked))[0]).toBe('DEADLINE_EXCEEDED');
  }
  const { waiter, request } = limiter.asked[0]!;
  // When another call of the gateway is answered, the service has read the cancellation.
  const other = gateway.begin({ descriptors: [of('other')] });
  await until(() => limiter.asked.length === 2);
  limiter.asked[1]!.waiter.approve(QUOTA);
  await other.answer;
  waiter.approve(QUOTA);
  await until(() => limiter.released.length === 1);

  expect(request).toMatchObject({ canWait: false, hits: 2 });
  expect(limiter.released).toEqual([waiter.requestId]);
});
