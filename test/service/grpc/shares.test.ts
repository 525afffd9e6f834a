import { ruleForAll, useGrpcApps } from '../../support/grpc-app.js';
import {
  codesOf,
  type Gateway,
  of,
  type PendingCall,
  useGateways,
} from '../../support/grpc-gateway.js';
import { useGrpcServices } from '../../support/grpc-service.js';
import { StoreLimiterStub } from '../../support/store-limiter-stub.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';
import { quotaOf } from '../../support/quota.js';

const QUOTA = quotaOf(1000);

const start = useGrpcServices();
const gatewayOf = useGateways();

let limiter: StoreLimiterStub;
let gateway: Gateway;
let connect: () => Gateway;
beforeEach(async () => {
  limiter = new StoreLimiterStub();
  const waits = { ...ruleForAll({ max_wait_millis: 60_000 }), key_pattern: 'patient-.*' };
  const service = await start(limiter, { rules: [waits] });
  gateway = gatewayOf(service);
  connect = () => gatewayOf(service);
});

/** Begins a call of 100 descriptors. */
function beginLarge(by: Gateway, name: string): PendingCall {
  return by.begin({ descriptors: Array.from({ length: 100 }, (_, i) => of(`${name}-${i}`)) });
}

/** Begins calls that take the share of a connection. */
const beginShare = (by: Gateway, name: string): PendingCall[] =>
  Array.from({ length: 10 }, (_, i) => beginLarge(by, `${name}-${i}`));

/** The call of a descriptor's key. */
const callOf = (key: string): string => key.replace(/-\d+$/, '');

/** Approves each check that is asked for, until the calls are over. */
async function approveAll(calls: readonly PendingCall[]): Promise<void> {
  let isOver = false;
  const over = Promise.allSettled(calls.map(({ answer }) => answer)).then(() => (isOver = true));
  let approved = 0;
  await until(() => {
    for (; approved < limiter.asked.length; approved += 1) {
      limiter.asked[approved]!.waiter.approve(QUOTA);
    }
    return isOver;
  });
  await over;
}

test('at most 1000 checks of a connection are under way, and further ones wait for their turn', async () => {
  const calls = [...beginShare(gateway, 'large'), ...beginShare(gateway, 'late')];
  await until(() => limiter.asked.length === 1000);
  // Answered on the same connection, after all of the calls have been read.
  const single = gateway.begin({ descriptors: [of('single')] });
  await until(() => limiter.asked.length === 1001);
  expect(limiter.asked.at(-1)!.request.key).toBe('single');
  limiter.asked.at(-1)!.waiter.approve(QUOTA);
  await single.answer;
  const begun = new Set(limiter.asked.map(({ request }) => callOf(request.key)));
  limiter.asked[0]!.waiter.approve(QUOTA);
  await until(() => limiter.asked.length === 1002);

  // Ten calls have the share. The next check is the first one of another call.
  const { key } = limiter.asked.at(-1)!.request;
  expect(key).toMatch(/^(large|late)-\d-0$/);
  expect(begun).not.toContain(callOf(key));
  await approveAll(calls);
  for (const { answer } of calls) expect((await answer).overall_code).toBe('OK');
});

test('each connection has a share of its own, and at most 4000 checks of all are under way', async () => {
  const calls = [...beginShare(gateway, 'first'), beginLarge(gateway, 'first-more')];
  await until(() => limiter.asked.length === 1000);
  for (const name of ['second', 'third', 'fourth']) {
    const before = limiter.asked.length;
    calls.push(...beginShare(connect(), name));
    await until(() => limiter.asked.length === before + 1000);
  }
  const late = connect();
  calls.push(beginLarge(late, 'late'));
  // Answered on the same connection, after the call before it has been read.
  const single = late.begin({ descriptors: [of('single')] });
  await until(() => limiter.asked.length === 4001);
  limiter.asked.at(-1)!.waiter.approve(QUOTA);
  await single.answer;
  limiter.asked[0]!.waiter.approve(QUOTA);
  await until(() => limiter.asked.length === 4002);

  expect(limiter.asked.at(-1)!.request.key).toMatch(/^(first-\w+|late)-0$/);
  await approveAll(calls);
});

test('a denied call asks for no more descriptors', async () => {
  const first = beginShare(gateway, 'first');
  await until(() => limiter.asked.length === 1000);
  const second = beginLarge(gateway, 'second');
  // The service reads this call after the second.
  const single = gateway.begin({ descriptors: [of('single')] });
  await until(() => limiter.asked.length === 1001);
  limiter.asked.at(-1)!.waiter.approve(QUOTA);
  await single.answer;
  limiter.asked[0]!.waiter.approve(QUOTA);
  await until(() => limiter.asked.length === 1002);
  limiter.asked.at(-1)!.waiter.decide({ outcome: 'denied', reason: 'limit_reached', quota: QUOTA });
  await approveAll(first);

  expect(codesOf(await second.answer).slice(0, 2)).toEqual(['OVER_LIMIT', 'UNKNOWN']);
  expect(limiter.asked.map(({ request }) => request.key)).not.toContain('second-1');
});

test('descriptors that wait do not delay other calls on their connection', async () => {
  const patient = Array.from({ length: 11 }, (_, call) =>
    gateway.begin({
      descriptors: Array.from({ length: 100 }, (_, i) => of(`patient-${call}-${i}`)),
    }),
  );
  await until(() => limiter.asked.length === 1100);
  const large = beginLarge(gateway, 'large');
  await until(() => limiter.asked.length === 1200);

  await approveAll([...patient, large]);
});

describe('on Redis', () => {
  const redis = useRedis();
  const startApp = useGrpcApps();

  test('a check of another connection is answered before the last of 20 large calls, and none fails', async () => {
    const app = await startApp({ REDIS_URL: redis.url, MAX_REQUESTS: '1000' });
    const [large, small] = [gatewayOf(app), gatewayOf(app)];
    await small.askFor(uniqueKey());
    const key = uniqueKey();
    const answered: string[] = [];
    const calls = Array.from({ length: 20 }, async (_, i) => {
      const { overall_code } = await beginLarge(large, `${key}-${i}`).answer;
      answered.push('large');
      return overall_code;
    });
    // Not by a timer, which a busy machine may delay until all are answered.
    await Promise.race(calls);
    for (let i = 0; i < 3; i += 1) {
      await small.askFor(uniqueKey());
      answered.push('small');
    }

    expect(await Promise.all(calls)).toEqual(Array.from({ length: 20 }, () => 'OK'));
    expect(answered.lastIndexOf('small')).toBeLessThan(answered.lastIndexOf('large'));
  });
});
