import { bothLimiters } from '../../support/both-limiters.js';
import { debugState } from '../../support/debug-state.js';
import { type GrpcApp, useGrpcApps } from '../../support/grpc-app.js';
import { failureOf, type Gateway, headersOf, of, useGateways } from '../../support/grpc-gateway.js';
import { requestRate, waitInTurn } from '../../support/rate-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const start = useGrpcApps();
const gatewayOf = useGateways();

describe.each(bothLimiters(redis))('is_negative_hits (%s limiter)', (_name, settings) => {
  let app: GrpcApp;
  let gateway: Gateway;
  let key: string;
  beforeEach(async () => {
    app = await start({ ...settings(), MAX_REQUESTS: '10' });
    gateway = gatewayOf(app);
    key = uniqueKey();
  });

  const approvedOf = async (of: string): Promise<number | undefined> =>
    (await debugState(app.url, of)).NumApprovedThisWindow;
  const negative = (value?: number) => ({
    ...(value !== undefined && { hits_addend: { value } }),
    is_negative_hits: true,
  });
  const take = (hits_addend: number) => gateway.ask({ hits_addend, descriptors: [of(key)] });

  test('gives hits back, also in a full key, and says what is left', async () => {
    await take(10);
    const reply = await gateway.ask({ descriptors: [of(key, negative(4))] });

    expect(reply).toMatchObject({
      overall_code: 'OK',
      statuses: [{ code: 'OK', limit_remaining: 4, current_limit: { requests_per_unit: 10 } }],
    });
    expect(headersOf(reply)).toMatchObject({ 'X-RateLimit-Remaining': '4' });
    expect(await approvedOf(key)).toBe(6);
  });

  test('is never denied, and gives back no more than was taken', async () => {
    await take(10);
    const pause = await fetch(`${app.url}/rate/${key}?pauseMillis=60000`, { method: 'PUT' });
    expect(pause.status).toBe(200);
    const { overall_code, statuses } = await gateway.ask({
      descriptors: [of(key, negative(1000))],
    });

    expect([overall_code, statuses[0]?.code]).toEqual(['OK', 'OK']);
    expect(await approvedOf(key)).toBe(0);
  });

  test("takes the request's hits if the descriptor has none of its own, and 1 without any", async () => {
    await take(9);
    await gateway.ask({ hits_addend: 3, descriptors: [of(key, negative())] });
    expect(await approvedOf(key)).toBe(6);
    await gateway.ask({ descriptors: [of(key, negative())] });
    expect(await approvedOf(key)).toBe(5);
  });

  test('of 0 hits takes nothing and gives nothing back', async () => {
    await take(9);
    await gateway.ask({ descriptors: [of(key, negative(0))] });
    expect(await approvedOf(key)).toBe(9);
  });

  test('of a key that does not exist creates none', async () => {
    const { overall_code, statuses } = await gateway.ask({ descriptors: [of(key, negative(3))] });

    expect(overall_code).toBe('OK');
    expect(statuses).toMatchObject([{ code: 'OK', limit_remaining: 10 }]);
    expect((await debugState(app.url, key)).Found).toBe(false);
  });

  test('serves those who wait', async () => {
    await take(10);
    const [waiter] = await waitInTurn([app], key, 1);
    await gateway.ask({ descriptors: [of(key, negative(1))] });

    expect(await waiter!.answer).toMatchObject({ status: 200 });
    expect(await approvedOf(key)).toBe(10);
  });

  test('leaves what is held', async () => {
    const held = await requestRate(app.url, key, 'hits=4&holdMillis=60000').answer;
    await take(3);
    await gateway.ask({ descriptors: [of(key, negative(10))] });

    expect(held.status).toBe(200);
    expect(await approvedOf(key)).toBe(4);
  });

  test('is done only if all other descriptors are approved', async () => {
    const full = uniqueKey();
    await gateway.ask({ hits_addend: 10, descriptors: [of(full)] });
    await take(5);
    const descriptors = [of(key, negative(5)), of(full)];
    const denied = await gateway.ask({ descriptors });

    expect([denied.overall_code, denied.statuses.map(({ code }) => code)]).toEqual([
      'OVER_LIMIT',
      ['UNKNOWN', 'OVER_LIMIT'],
    ]);
    expect(await approvedOf(key)).toBe(5);

    const other = uniqueKey();
    const reply = await gateway.ask({ descriptors: [of(key, negative(5)), of(other)] });
    expect(reply.statuses.map(({ limit_remaining }) => limit_remaining)).toEqual([10, 9]);
    expect([await approvedOf(key), await approvedOf(other)]).toEqual([0, 1]);
  });

  test.each(['sliding_window', 'token_bucket'])(
    'is rejected in a key whose limit is a %s, and the others take nothing',
    async (ALGORITHM) => {
      const paced = await start({ ...settings(), ALGORITHM });
      const other = uniqueKey();
      const asked = { descriptors: [of(other), of(key, negative(1))] };

      expect(await failureOf(gatewayOf(paced).ask(asked))).toEqual([
        'INVALID_ARGUMENT',
        `descriptors[1].is_negative_hits must be false: the limit of its key is a ${ALGORITHM}, and only fixed windows take hits back`,
      ]);
      expect((await debugState(paced.url, other)).Found).toBe(false);
    },
  );
});
