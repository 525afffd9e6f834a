import { bodyOf, send } from '../../support/http-client.js';
import { useHttpKey } from '../../support/http-key.js';
import { bearer } from '../../support/tokens.js';
import { useApp, useApps } from '../../support/use-apps.js';

const start = useApps();

describe('a pause', () => {
  const app = useApp();
  const key = useHttpKey(() => app);

  test('may only lengthen an earlier one, and is answered with the time until it ends', async () => {
    await key.pause('?pauseMillis=60000');
    const [status, body] = bodyOf(await key.pause('?pauseMillis=1000&canShorten=false'));
    expect(status).toBe(200);
    expect((body as { pauseMillis: number }).pauseMillis).toBeGreaterThan(1000);
    const replaced = await key.pause('?pauseMillis=0&canShorten=true');
    expect(bodyOf(replaced)).toEqual([200, { key: key.name, pauseMillis: 0 }]);
  });

  test.each([
    ['', 'pauseMillis must be a whole number from 0 to 86400000'],
    ['?pauseMillis=86400001', 'pauseMillis must be a whole number from 0 to 86400000'],
    ['?pauseMillis=1&pauseMillis=2', 'pauseMillis must be given once'],
    ['?canShorten=false', 'pauseMillis must be a whole number from 0 to 86400000'],
    ['?pauseMillis=1&canShorten=no', 'canShorten must be true, false, 1 or 0'],
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

describe('a report of what remains', () => {
  const app = useApp(() => ({ MAX_REQUESTS: '10', WINDOW_MILLIS: '3600000' }));
  const key = useHttpKey(() => app);
  const report = (query: string) => send(app.url, 'PUT', `/rate/${key.name}${query}`);

  test.each([
    ['?resetMillis=5', 'remaining must be a whole number from 0 to 1000000000000'],
    ['?remaining=-1', 'remaining must be a whole number from 0 to 1000000000000'],
    ['?remaining=1&remaining=2', 'remaining must be given once'],
    ['?remaining=1&resetMillis=0', 'resetMillis must be a whole number from 1 to 86400000'],
    ['?remaining=1&resetMillis=86400001', 'resetMillis must be a whole number from 1 to 86400000'],
    ['?remaining=1&limit=a&limit=b', 'limit must be given once'],
    [
      '?remaining=1&pauseMillis=1',
      'pauseMillis must be left out if remaining, resetMillis or limit is given',
    ],
    [
      '?remaining=1&canShorten=false',
      'canShorten must be left out if remaining, resetMillis or limit is given',
    ],
    ['?remaning=1', 'unknown parameter remaning; did you mean remaining?'],
    ['?remaining=1&limit=other', 'limit must be one of the limits of the key: default'],
  ])('with "%s" is a 400, and begins no key', async (query, error) => {
    expect(bodyOf(await report(query))).toEqual([400, { error, key: key.name }]);
    expect((await key.state()).Found).toBe(false);
  });

  test('is answered with what is left, and with the name of the limit if that is given', async () => {
    expect(bodyOf(await report('?remaining=4'))).toEqual([200, { key: key.name, remaining: 4 }]);
    expect(bodyOf(await report('?remaining=9&limit=default'))).toEqual([
      200,
      { key: key.name, limit: 'default', remaining: 4 },
    ]);
    expect((await key.check()).headers.ratelimit).toMatch(/^"default";r=3;/);
  });

  test('to a limit that is no fixed window is a 400 that names the algorithm', async () => {
    const { url } = await start({ ALGORITHM: 'sliding_window' });
    const error = 'limit must name a fixed window; default is a sliding_window';
    const answer = await send(url, 'PUT', `/rate/${key.name}?remaining=1`);
    expect(bodyOf(answer)).toEqual([400, { error, key: key.name }]);
  });
});
