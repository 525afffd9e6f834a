import { useAppsByRules } from '../../support/app-by-rules.js';
import { type Answer, send } from '../../support/http-client.js';

const serve = useAppsByRules();

/** The headers of any form that describe the limit. */
function limitHeaders({ headers }: Answer): Record<string, unknown> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name.includes('ratelimit')));
}

const HOUR = { WINDOW_MILLIS: '3600000', MAX_REQUESTS: '2' };

test.each([
  ['draft', { 'ratelimit-policy': '"default";q=2;w=3600', ratelimit: '"default";r=1;t=3600' }],
  [
    'legacy',
    { 'x-ratelimit-limit': '2', 'x-ratelimit-remaining': '1', 'x-ratelimit-reset': '3600' },
  ],
  ['off', {}],
])('the headers of the form %s are %j', async (RATE_LIMIT_HEADERS, headers) => {
  const { url } = await serve([], { ...HOUR, RATE_LIMIT_HEADERS });
  expect(limitHeaders(await send(url, 'POST', '/rate/key'))).toEqual(headers);
});

test('the headers have the name of the rule, and no window length unless it is in whole seconds', async () => {
  const rule = { key_pattern: 'key', name: 'tenants/gold', window_millis: 3_600_001, shadow: true };
  const { url } = await serve([rule], { MAX_REQUESTS: '1' });
  await send(url, 'POST', '/rate/key');
  const passed = await send(url, 'POST', '/rate/key');
  expect([passed.status, passed.headers['x-sluice-shadow']]).toEqual([200, 'denied']);
  expect(limitHeaders(passed)).toEqual({
    'ratelimit-policy': '"tenants/gold";q=1',
    ratelimit: '"tenants/gold";r=0;t=3601',
  });
});

test('the headers are left out if nothing was counted', async () => {
  const { url } = await serve([], HOUR);
  expect(limitHeaders(await send(url, 'POST', '/rate/key?canWait=perhaps'))).toEqual({});
  expect(limitHeaders(await send(url, 'GET', '/healthz'))).toEqual({});
});
