import { debugState, type DebugState } from '../../support/debug-state.js';
import { approve, ratePath, send } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useApp } from '../../support/use-apps.js';

/** Keys that are easily confused with each other or with something else. The fuzz draws more. */
const KEYS = [
  'x',
  'X',
  '}x',
  '{x',
  'x}',
  '{x}',
  '{',
  '}',
  '{}',
  '{{x}}',
  '%',
  '%7B%7D',
  'a/b',
  '/',
  '//',
  'a%2Fb',
  '..',
  '../healthz',
  '__proto__',
  'constructor',
  ' ',
  'a+b',
  '\n',
  '\0',
  'a\0b',
  '\u007f',
  '\\',
  '"',
  "'",
  ':requests',
  'x:leader',
  'é',
  'e\u0301',
  '日本語',
  '🚰',
  '👩‍👩‍👧',
  '\u2028',
  '\ufeff',
  'debug',
  'null',
  '0',
  'k?canWait=true',
  'k#fragment',
  'k&maxRequests=1',
  'x'.repeat(512),
  'é'.repeat(256),
  '🚰'.repeat(128),
  '\0'.repeat(512),
];

describe('keys', () => {
  const app = useApp(() => ({ WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1000' }));

  test('each have a limiter of their own, shown under their own name', async () => {
    // Each key has one approval and a maximum of its own.
    for (const [i, key] of KEYS.entries()) await approve(app.url, key, `?maxRequests=${1001 + i}`);
    const own = KEYS.map((key, i): [string, unknown] => [key, [1001 + i, 1]]);
    const numbersOf = ({ Config, NumApprovedThisWindow }: DebugState): unknown => [
      Config?.MaxRequestsPerWindow,
      NumApprovedThisWindow,
    ];

    const seen: [string, unknown][] = [];
    for (const key of KEYS) {
      const state = await debugState(app.url, key);
      seen.push([state.Key, numbersOf(state)]);
    }
    expect(seen).toEqual(own);

    const { text, json } = await send(app.url, 'GET', '/debug');
    const { Instances: instances } = json() as { Instances: Record<string, DebugState> };
    const listed = Object.entries(instances).map(([key, state]): [string, unknown] => {
      expect(state.Key).toBe(key);
      return [key, numbersOf(state)];
    });
    expect(new Map(listed)).toEqual(new Map(own));
    expect(text.match(/"Found":true/g)).toHaveLength(KEYS.length);
  });

  test.each(KEYS.map((key) => [JSON.stringify(key).slice(0, 40), key]))(
    '%s is in errors and is released under its own name',
    async (_shown, key) => {
      const refused = await send(app.url, 'POST', `${ratePath(key)}?canWait=x`);
      expect(refused.status).toBe(400);
      expect(refused.json()).toMatchObject({ key });

      const requestId = await approve(app.url, key);
      const path = `${ratePath(key)}/${requestId}`;
      expect((await send(app.url, 'DELETE', path)).status).toBe(200);
      expect((await send(app.url, 'DELETE', path)).json()).toStrictEqual({
        error: 'request not found',
        key,
      });
    },
  );

  test('percent-encoding more than is needed asks for the same key', async () => {
    const key = uniqueKey();
    await approve(app.url, key);
    const encoded = [...Buffer.from(key)].map((byte) => `%${byte.toString(16)}`).join('');
    await send(app.url, 'POST', `/rate/${encoded}`);

    expect((await debugState(app.url, key)).NumApprovedThisWindow).toBe(2);
  });
});
