import { ruleForAll } from '../../support/grpc-app.js';
import { codesOf, headersOf, of, useGateways } from '../../support/grpc-gateway.js';
import { useGrpcServices } from '../../support/grpc-service.js';
import { StoreLimiterStub } from '../../support/store-limiter-stub.js';
import { until } from '../../support/until.js';
import { quotaOf } from '../../support/quota.js';

const QUOTA = quotaOf(1500);

const start = useGrpcServices();
const gatewayOf = useGateways();

/** The longest wait of a descriptor under a rule and a gateway's timeout. */
async function longestWait(
  max_wait_millis: number,
  timeoutMillis?: number,
): Promise<number | undefined> {
  const limiter = new StoreLimiterStub();
  const service = await start(limiter, { rules: [ruleForAll({ max_wait_millis })] });
  const call = gatewayOf(service).begin(
    { descriptors: [of('key')] },
    timeoutMillis === undefined ? {} : { timeoutMillis },
  );
  const { request } = await until(() => limiter.asked[0]);
  call.cancel();
  return request.maxWaitMillis;
}

test('a descriptor waits at most as long as its rule says', async () => {
  expect(await longestWait(700)).toBe(700);
  expect(await longestWait(700, 60_000)).toBe(700);
});

test("a descriptor waits at most nine tenths of its gateway's timeout", async () => {
  const longest = await longestWait(3_600_000, 60_000);

  expect(longest).toBeLessThanOrEqual(54_000);
  expect(longest).toBeGreaterThan(0);
  expect(Number.isInteger(longest)).toBe(true);
});

test("only the rule limits a descriptor's wait if its gateway has no timeout", async () => {
  expect(await longestWait(31_622_400_000)).toBe(31_622_400_000);
});

test('a descriptor whose wait is over is denied', async () => {
  const limiter = new StoreLimiterStub();
  const service = await start(limiter, { rules: [ruleForAll({ max_wait_millis: 60_000 })] });
  const { answer } = gatewayOf(service).begin({ descriptors: [of('key')] });
  (await until(() => limiter.asked[0])).waiter.expire(QUOTA);
  const response = await answer;

  expect(codesOf(response)).toEqual(['OVER_LIMIT']);
  expect(headersOf(response)['Retry-After']).toBe('2');
});

test('a descriptor whose wait is over has the others withdrawn or given back, and no more are asked for', async () => {
  const limiter = new StoreLimiterStub();
  const service = await start(limiter, {
    rules: [{ key_pattern: 'patient-.*', key_pattern_is_regex: true, max_wait_millis: 60_000 }],
  });
  const { answer } = gatewayOf(service).begin({
    descriptors: [of('hasty'), of('patient-1'), of('patient-2'), of('patient-3')],
  });
  await until(() => limiter.asked.length === 3);
  const [first, second, third] = limiter.asked;
  expect(limiter.asked.map(({ request }) => [request.key, request.canWait])).toEqual([
    ['patient-1', true],
    ['patient-2', true],
    ['patient-3', true],
  ]);
  first!.waiter.approveFromQueue(QUOTA);
  second!.waiter.expire(QUOTA);
  const response = await answer;

  expect(response.overall_code).toBe('OVER_LIMIT');
  expect(codesOf(response)).toEqual(['UNKNOWN', 'OK', 'OVER_LIMIT', 'UNKNOWN']);
  expect(limiter.withdrawn).toEqual([third!.waiter.requestId]);
  expect(limiter.released).toEqual([first!.waiter.requestId]);
  expect(limiter.asked).toHaveLength(3);
});
