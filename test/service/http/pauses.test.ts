import { bodyOf, send } from '../../support/http-client.js';
import { useHttpKey } from '../../support/http-key.js';
import { bearer } from '../../support/tokens.js';
import { useApp, useApps } from '../../support/use-apps.js';

const start = useApps();

describe('a pause', () => {
  const app = useApp();
  const key = useHttpKey(() => app);

  test.each([
    ['', 'pauseMillis must be a whole number from 0 to 86400000'],
    ['?pauseMillis=86400001', 'pauseMillis must be a whole number from 0 to 86400000'],
    ['?pauseMillis=1&pauseMillis=2', 'pauseMillis must be given once'],
    ['?pausemillis=1', 'unknown parameter pausemillis; did you mean pauseMillis?'],
  ])('with "%s" is a 400, and changes nothing', async (query, error) => {
    expect(bodyOf(await key.pause(query))).toEqual([400, { error, key: key.name }]);
    expect((await key.check()).status).toBe(200);
  });
});

test('a pause needs the scope "configure", or a rule that allows it', async () => {
  const worker = { name: 'worker', token: 'token-of-a-worker', scopes: ['check'] };
  const operator = {
    name: 'operator',
    token: 'token-of-an-operator',
    scopes: ['check', 'configure'],
  };
  const rule = { key_pattern: 'vendor-.*', key_pattern_is_regex: true, requests_can_pause: true };
  const app = await start({}, { tokens: [worker, operator], rules: [rule] });
  const pause = (path: string, caller: { token: string }) =>
    send(app.url, 'PUT', `/rate/${path}?pauseMillis=1000`, bearer(caller));
  expect(bodyOf(await pause('other', worker))).toEqual([
    403,
    { error: 'the token lacks the scope configure', key: 'other' },
  ]);
  expect((await pause('other', operator)).status).toBe(200);
  expect((await pause('vendor-1', worker)).status).toBe(200);
});

test('a pause of a key without a rule is rejected where checks of it are', async () => {
  const app = await start({ UNKNOWN_KEYS: 'deny' }, { rules: [{ key_pattern: 'known' }] });
  const pause = (key: string) => send(app.url, 'PUT', `/rate/${key}?pauseMillis=1000`);
  expect(bodyOf(await pause('other'))).toEqual([
    403,
    { error: 'no rule matches the key', key: 'other' },
  ]);
  expect((await pause('known')).status).toBe(200);
});
