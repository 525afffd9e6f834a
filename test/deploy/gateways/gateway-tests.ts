import { debugState, untilWaiting } from '../../support/debug-state.js';
import { begin, ratePath, send } from '../../support/http-client.js';
import { openConnection, requestText } from '../../support/raw-http.js';
import { killReplicas, type ReplicaProcess, startReplica } from '../../support/replica-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { bearer, tokenFile } from '../../support/tokens.js';
import { until } from '../../support/until.js';
import { useAppBehind } from './app-behind.js';
import { OF_BROWSER } from './browser-headers.js';
import { type Gateway, startGateway, type Surroundings } from './gateway.js';

/** One approval in an hour, and a log of all checks. */
const SETTINGS = {
  WINDOW_MILLIS: '3600000',
  MAX_REQUESTS: '1',
  LOG_2XX: 'true',
  LOG_4XX: 'true',
  // Its name in the gateways' files. A client's `Host` must not arrive.
  ALLOWED_HOSTS: 'sluice',
};
const HOUR = /^3[56]\d\d$/;
const MANY = 40;

/** A gateway that the tests run on. */
export interface Case {
  readonly gateway: Gateway;
  /** The keys of requests that may wait and of plain ones, if the client sends no API key. */
  readonly keys: { readonly plain: string; readonly waiting: string };
  /** Whether the gateway adds Sluice's headers about the limit to what the app answers. */
  readonly showsQuota?: true;
  /** Whether the gateway learns only from periodic health checks that Sluice is down. */
  readonly asksHealth?: true;
  /** API keys, and the keys of Sluice that the gateway, or another one, makes of them. */
  readonly keyOf: readonly (readonly [apiKey: string, key: string, by?: Gateway])[];
  /** Whether a Sluice that does not answer counts as down. */
  readonly limitsSilence?: true;
}

export const ADDRESS = 'address:127.0.0.1';
export const BY_ADDRESS = { plain: ADDRESS, waiting: ADDRESS };
/** API keys with characters that mean something in a path. */
export const SLASHED = 'a/b+c==';
export const ANY = 'a/../b?maxRequests=9&canWait=true %2F#é';

/** The tests of one gateway in front of a service and Sluice. */
export function describeGateway({ gateway, keys, keyOf, ...features }: Case): void {
  const { showsQuota, asksHealth, limitsSilence } = features;
  const folder = useTemporaryFolder();
  const app = useAppBehind();
  let sluice: ReplicaProcess;

  async function start(gateway: Gateway, more: Partial<Surroundings> = {}): Promise<string> {
    const host = new URL(sluice.url).host;
    return startGateway(gateway, { sluice: host, app: app.host, folder, ...more });
  }

  /** A check in the log. */
  interface Check {
    readonly url: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly remotePort: number;
  }

  /** The checks that Sluice has answered. */
  function checks(): Check[] {
    const requests = sluice.log.flatMap(({ req }) => (req === undefined ? [] : [req as Check]));
    return requests.filter(({ url }) => /^\/rate\/./.test(url));
  }

  beforeEach(async () => {
    sluice = await startReplica(SETTINGS);
  });

  // `npm test` says which programs are missing.
  const describeIfThere = gateway.program === '' ? describe.skip : describe;

  describeIfThere(`${gateway.name} as a gateway`, () => {
    test.each([
      ['at once', '/orders/1?a=b'],
      ['that may wait', '/reports/1?a=b'],
    ])('passes a request %s to the app, and only its ids to Sluice', async (_, path) => {
      const url = await start(gateway);
      const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
      const ids = { 'x-correlation-id': 'c', traceparent };
      const headers = { Authorization: 'Basic of-the-app', Cookie: 'a=b', ...ids };
      const request = { method: 'PUT', body: 'content', headers };
      const answer = await fetch(url + path, request);

      expect([answer.status, await answer.text()]).toEqual([200, 'served']);
      expect(app.served).toMatchObject([
        {
          method: 'PUT',
          url: path,
          body: 'content',
          headers: { authorization: 'Basic of-the-app', cookie: 'a=b' },
        },
      ]);
      const check = await until(() => checks()[0]);
      expect(check.headers).toMatchObject(ids);
      for (const name of ['authorization', 'cookie', 'transfer-encoding']) {
        expect(check.headers).not.toHaveProperty(name);
      }
      expect(check.headers['content-length'] ?? '0').toBe('0');
    });

    test.each([
      ['at once', '/'],
      ['that may wait', '/reports/1'],
    ])("keeps a browser's headers from Sluice for a request %s", async (_, path) => {
      const url = await start(gateway);
      const answer = await send(url, 'GET', path, OF_BROWSER);

      expect([answer.status, answer.text]).toEqual([200, 'served']);
      const check = await until(() => checks()[0]);
      const arrived = Object.entries(OF_BROWSER).filter(
        ([name, value]) => check.headers[name.toLowerCase()] === value,
      );
      expect(arrived).toEqual([]);
    });

    test('tells a denied client when to come back, and does not ask the app', async () => {
      const url = await start(gateway);
      await send(url, 'GET', '/');
      const refused = await send(url, 'POST', '/');

      expect(refused.status).toBe(429);
      expect(refused.headers['retry-after']).toMatch(HOUR);
      expect(refused.json()).toMatchObject({ error: 'rate limit exceeded' });
      expect(app.served).toHaveLength(1);
    });

    test.each([
      ['draft', ['ratelimit', 'ratelimit-policy']],
      ['legacy', ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset']],
    ])("passes on Sluice's headers about the limit in the form %s", async (form, names) => {
      await killReplicas();
      sluice = await startReplica({ ...SETTINGS, RATE_LIMIT_HEADERS: form });
      const url = await start(gateway);
      const passed = await send(url, 'GET', '/');
      const refused = await send(url, 'GET', '/');

      expect([passed.status, refused.status]).toEqual([200, 429]);
      const headersOf = (answer: typeof passed) =>
        Object.keys(answer.headers)
          .filter((name) => name.includes('ratelimit'))
          .sort();
      expect(headersOf(refused)).toEqual(names);
      expect(headersOf(passed)).toEqual(showsQuota ? names : []);
    });

    test('does not let a request set its own limit', async () => {
      const url = await start(gateway);
      const path = '/?maxRequests=1000&canWait=true';
      const statuses = [await send(url, 'GET', path), await send(url, 'GET', path)];

      expect(statuses.map(({ status }) => status)).toEqual([200, 429]);
      expect((await debugState(sluice.url, keys.plain)).Config).toMatchObject({
        MaxRequestsPerWindow: 1,
      });
    });

    test('lets a request wait for its turn', async () => {
      const url = await start(gateway);
      const { json } = await send(sluice.url, 'POST', ratePath(keys.waiting));
      const { request_id: id } = json() as { request_id: string };
      const waiting = begin(url, 'GET', '/reports/1');
      await untilWaiting(sluice.url, keys.waiting, 1);
      expect(app.served).toEqual([]);
      await send(sluice.url, 'DELETE', `${ratePath(keys.waiting)}/${id}`);

      expect((await waiting.answer).text).toBe('served');
    });

    test.each([
      ['without', requestText('GET', '/reports/1')],
      ['with', `${requestText('POST', '/reports/1', { 'Content-Length': '7' })}content`],
    ])('withdraws a waiting request %s a body when its client disconnects', async (_, text) => {
      const url = await start(gateway);
      await send(url, 'GET', '/reports/1');
      const client = await openConnection(url);
      client.write(text);
      await untilWaiting(sluice.url, keys.waiting, 1);
      client.disconnect();

      await untilWaiting(sluice.url, keys.waiting, 0);
      await sluice.logged(({ status }) => status === 499);
    });

    test('keeps its connections to Sluice', async () => {
      const url = await start(gateway);
      for (let i = 0; i < MANY; i += 1) await send(url, 'GET', '/');

      await until(() => checks().length === MANY);
      const connections = new Set(checks().map(({ remotePort }) => remotePort));
      expect(connections.size).toBeLessThan(MANY / 4);
    });

    test('passes on a 503 if Sluice has no room for a waiter', async () => {
      await killReplicas();
      sluice = await startReplica({ ...SETTINGS, MAX_WAITERS: '0' });
      const url = await start(gateway);
      await send(url, 'GET', '/reports/1');
      const refused = await send(url, 'GET', '/reports/1');

      expect(refused.status).toBe(503);
      expect(refused.headers['retry-after']).toBe('1');
      expect(app.served).toHaveLength(1);
    });

    test('sends its token to Sluice, and passes no request without one', async () => {
      await killReplicas();
      const caller = { name: 'gateway', token: 'token-of-the-gateway', scopes: ['check'] };
      const AUTH_TOKENS_FILE = await tokenFile(folder, caller);
      sluice = await startReplica({ ...SETTINGS, AUTH_TOKENS_FILE });
      const headers = bearer(caller);
      const without = await start(gateway);
      const refused = await send(without, 'GET', '/', headers);
      const url = await start(gateway, { authorization: headers.Authorization });
      const passed = await send(url, 'GET', '/', { Authorization: 'Bearer of-the-app' });

      expect([401, 500]).toContain(refused.status);
      expect(passed.text).toBe('served');
      expect(app.served.map((one) => one.headers.authorization)).toEqual(['Bearer of-the-app']);
    });

    test('fails requests while Sluice is down', async () => {
      const url = await start(gateway);
      await sluice.kill('SIGKILL');

      const { status } = await send(url, 'GET', '/', { Host: 'api.example' });
      expect(status).toBeGreaterThanOrEqual(500);
      expect(app.served).toEqual([]);
    });

    test('passes requests while Sluice is down, if its file says so', async () => {
      const url = await start(gateway, { isOpen: true });
      await send(url, 'GET', '/');
      expect((await send(url, 'GET', '/')).status).toBe(429);
      await sluice.kill('SIGKILL');

      if (asksHealth) await until(async () => (await send(url, 'GET', '/')).status === 200);
      expect((await send(url, 'GET', '/')).text).toBe('served');
    });

    for (const [apiKey, key, by = gateway] of keyOf) {
      test(`makes of the API key ${apiKey} the key ${key}`, async () => {
        const url = await start(by);
        const plain = await send(url, 'GET', '/', { 'X-Api-Key': 'Plain_1-2.3~4=+' });
        const other = await send(url, 'GET', '/', {
          'X-Api-Key': Buffer.from(apiKey).toString('latin1'),
        });

        expect([plain.status, other.status]).toEqual([200, 200]);
        const { Instances } = (await send(sluice.url, 'GET', '/debug')).json() as {
          Instances: Record<string, { Config: { MaxRequestsPerWindow: number } }>;
        };
        expect(Object.keys(Instances).sort()).toEqual([key, 'client:Plain_1-2.3~4=+'].sort());
        expect(Instances[key]!.Config.MaxRequestsPerWindow).toBe(1);
      });
    }

    if (!limitsSilence) return;
    test('fails requests while Sluice does not answer', async () => {
      const url = await start(gateway);
      sluice.signal('SIGSTOP');
      const { status, headers } = await send(url, 'GET', '/');

      expect(status).toBe(503);
      expect(headers['retry-after']).toBe('1');
      expect(app.served).toEqual([]);
    });
  });
}
