import { bothLimiters } from '../../support/both-limiters.js';
import { debugState } from '../../support/debug-state.js';
import { type GrpcApp, useGrpcApps } from '../../support/grpc-app.js';
import { failureOf, type Gateway, headersOf, of, useGateways } from '../../support/grpc-gateway.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const start = useGrpcApps();
const gatewayOf = useGateways();

describe.each(bothLimiters(redis))('hits_addend (%s limiter)', (_name, settings) => {
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

  test('of the request is the number of approvals that each descriptor takes', async () => {
    const other = uniqueKey();
    const { statuses } = await gateway.ask({ hits_addend: 3, descriptors: [of(key), of(other)] });

    expect(statuses.map(({ limit_remaining }) => limit_remaining)).toEqual([7, 7]);
    expect([await approvedOf(key), await approvedOf(other)]).toEqual([3, 3]);
  });

  test.each([{}, { hits_addend: 0 }, { hits_addend: 1 }])(
    'of the request counts as one: %j',
    async (hits) => {
      await gateway.ask({ ...hits, descriptors: [of(key)] });

      expect(await approvedOf(key)).toBe(1);
    },
  );

  test("of a descriptor replaces the request's", async () => {
    const other = uniqueKey();
    await gateway.ask({
      hits_addend: 3,
      descriptors: [
        of(key, { hits_addend: { value: 5 } }),
        of(other, { hits_addend: { value: 1 } }),
      ],
    });

    expect([await approvedOf(key), await approvedOf(other)]).toEqual([5, 1]);
  });

  describe('of 0 in a descriptor', () => {
    const none = { hits_addend: { value: 0 } };

    test('takes nothing, and says what is left', async () => {
      const other = uniqueKey();
      await gateway.ask({ hits_addend: 4, descriptors: [of(key)] });
      const asked = { hits_addend: 3, descriptors: [of(key, none), of(other)] };
      const { overall_code, statuses } = await gateway.ask(asked);

      expect(overall_code).toBe('OK');
      expect(statuses.map(({ limit_remaining }) => limit_remaining)).toEqual([6, 7]);
      expect([await approvedOf(key), await approvedOf(other)]).toEqual([4, 3]);
    });

    test('is denied if nothing is left, and then the others take nothing', async () => {
      const other = uniqueKey();
      await gateway.ask({ hits_addend: 10, descriptors: [of(key)] });
      const alone = await gateway.ask({ descriptors: [of(key, none)] });
      const { overall_code } = await gateway.ask({ descriptors: [of(key, none), of(other)] });

      expect(alone).toMatchObject({
        overall_code: 'OVER_LIMIT',
        statuses: [{ code: 'OVER_LIMIT', limit_remaining: 0 }],
      });
      expect(headersOf(alone)).toMatchObject({ 'Retry-After': expect.any(String) as string });
      expect(overall_code).toBe('OVER_LIMIT');
      expect(await approvedOf(key)).toBe(10);
      expect((await approvedOf(other)) ?? 0).toBe(0);
    });

    test('sets no limit', async () => {
      const five = { limit: { requests_per_unit: 5, unit: 'HOUR' } } as const;
      await gateway.ask({ descriptors: [of(key, { ...none, ...five })] });

      expect((await debugState(app.url, key)).Found).toBe(false);
    });
  });

  test('above the maximum is denied, and takes nothing', async () => {
    const { statuses } = await gateway.ask({ hits_addend: 11, descriptors: [of(key)] });

    expect(statuses).toMatchObject([{ code: 'OVER_LIMIT', limit_remaining: 10 }]);
    expect(await approvedOf(key)).toBe(0);
  });

  test('above the burst of a token bucket is denied, and takes nothing', async () => {
    const bucket = { ALGORITHM: 'token_bucket', BURST: '3', MAX_REQUESTS: '10' };
    const paced = await start({ ...settings(), ...bucket });
    const { statuses } = await gatewayOf(paced).ask({ hits_addend: 4, descriptors: [of(key)] });

    expect(statuses).toMatchObject([{ code: 'OVER_LIMIT', limit_remaining: 3 }]);
    expect(await debugState(paced.url, key)).toMatchObject({ NumApprovedThisWindow: 0 });
  });

  test.each<[object, string]>([
    [{ hits_addend: 1_000_000_001 }, 'hits_addend must be at most 1000000000'],
    [
      { descriptors: [{ value: 1_000_000_001 }] },
      'descriptors[0].hits_addend.value must be at most 1000000000',
    ],
    [
      { descriptors: [{ value: 1 }, { value: 2 ** 60 }] },
      'descriptors[1].hits_addend.value must be at most 1000000000',
    ],
  ])('%j is rejected, and takes nothing', async (asked, text) => {
    const { descriptors = [undefined], ...rest } = asked as {
      descriptors?: ({ value: number } | undefined)[];
    };
    const request = {
      ...rest,
      descriptors: descriptors.map((hits) => of(key, hits && { hits_addend: hits })),
    };

    expect(await failureOf(gateway.ask(request))).toEqual(['INVALID_ARGUMENT', text]);
    expect((await debugState(app.url, key)).Found).toBe(false);
  });
});
