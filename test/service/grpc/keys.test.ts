import { useGrpcApps } from '../../support/grpc-app.js';
import { failureOf, headersOf, of, useGateways } from '../../support/grpc-gateway.js';
import { approve, ratePath, send } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';

const start = useGrpcApps();
const gatewayOf = useGateways();

const BY_DEFAULT = { GRPC_KEY_TEMPLATE: '{domain}:{entries}' };

test('gateways and callers over HTTP share a key if it is {values}', async () => {
  const app = await start();
  const gateway = gatewayOf(app);
  const [first, second] = [uniqueKey(), uniqueKey()];
  await approve(app.url, first);
  expect((await gateway.askFor(first)).overall_code).toBe('OVER_LIMIT');

  expect((await gateway.askFor(second)).overall_code).toBe('OK');
  expect((await send(app.url, 'POST', ratePath(second))).status).toBe(429);
});

test('a key that an empty value makes empty is rejected', async () => {
  const app = await start();

  expect(await failureOf(gatewayOf(app).askFor(''))).toEqual([
    'INVALID_ARGUMENT',
    'key must be 1 to 512 bytes of UTF-8, not 0',
  ]);
});

test('rules match the keys, also keys that are cut', async () => {
  const app = await start(
    { ...BY_DEFAULT },
    {
      rules: [
        {
          key_pattern: 'edge:path=/reports/.*',
          key_pattern_is_regex: true,
          name: 'reports',
          max_requests_per_window: 7,
          window_millis: 60_000,
        },
        { key_pattern: 'edge:path=/free', max_requests_per_window: 9 },
      ],
    },
  );
  const gateway = gatewayOf(app);
  const limitOf = async (value: string): Promise<unknown> => {
    const descriptors = [{ entries: [{ key: 'path', value }] }];
    const { statuses } = await gateway.ask({ domain: 'edge', descriptors });
    return statuses[0]?.current_limit;
  };

  const reports = { requests_per_unit: 7, unit: 'MINUTE', name: 'reports' };
  expect(await limitOf('/reports/1')).toEqual(reports);
  expect(await limitOf(`/reports/${'a'.repeat(1000)}`)).toEqual(reports);
  expect(await limitOf('/free')).toEqual({ requests_per_unit: 9, unit: 'HOUR', name: 'default' });
  expect(await limitOf('/other')).toEqual({ requests_per_unit: 1, unit: 'HOUR', name: 'default' });
});

test('a descriptor that is twice in a request counts twice', async () => {
  const app = await start({ MAX_REQUESTS: '2' });
  const gateway = gatewayOf(app);
  const key = uniqueKey();
  const twice = { descriptors: [of(key), of(key)] };
  const response = await gateway.ask(twice);
  expect([response.overall_code, headersOf(response)['X-RateLimit-Remaining']]).toEqual([
    'OK',
    '0',
  ]);

  expect((await gateway.ask(twice)).overall_code).toBe('OVER_LIMIT');
});
