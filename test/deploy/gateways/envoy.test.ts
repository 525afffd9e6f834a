import { debugState, untilWaiting } from '../../support/debug-state.js';
import { approve, begin, ratePath, send } from '../../support/http-client.js';
import { openConnection, requestText } from '../../support/raw-http.js';
import {
  killReplicas,
  type LogLine,
  type ReplicaProcess,
  startReplica,
} from '../../support/replica-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { bearer, tokenFile } from '../../support/tokens.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';
import { useTls } from '../../support/use-tls.js';
import { grpcHost } from '../grpc/grpc-host.js';
import { ROOT } from '../repository-files.js';
import { useAppBehind } from './app-behind.js';
import { OF_BROWSER } from './browser-headers.js';
import { envoy } from './envoy.js';
import { type Gateway, startGateway, type Surroundings } from './gateway.js';
import type { Replacements } from './shipped-file.js';
import { yamlOfPage } from './yaml-of-page.js';

/**
 * One approval in ten minutes, so that no window ends while a test waits. The shipped rules still let requests wait for
 * the next windows.
 */
const SETTINGS = {
  WINDOW_MILLIS: '600000',
  MAX_REQUESTS: '1',
  GRPC_PORT: '0',
  CONFIG_FILE: `${ROOT}deploy/gateways/envoy-rules.yml`,
};
const TEN_MINUTES = /^(5\d\d|600)$/;
/** More than MAX_IN_FLIGHT_PER_CONNECTION. */
const MANY = 150;
const PLAIN = 'edge:route=api,remote_address=127.0.0.1';
const WAITING = 'edge:route=reports,remote_address=127.0.0.1';

/** A replica with this delay stops at a second signal. */
const DRAINING = { SHUTDOWN_DELAY_MILLIS: '3600000' };

/** A route whose requests take three approvals each, as in docs/envoy.md. */
const TAKING_THREE: Replacements = [
  [
    `
                            rate_limits:
                              - actions:
                                  - generic_key: { descriptor_key: route, descriptor_value: api }
                                  - remote_address: {}
`,
    `\n${yamlOfPage('hits_addend: { number: 3 }', 26)}`,
  ],
];

const folder = useTemporaryFolder();
const app = useAppBehind();
let sluice: ReplicaProcess;

async function restartSluice(more: Readonly<Record<string, string>>): Promise<void> {
  await killReplicas();
  sluice = await startReplica({ ...SETTINGS, ...more });
}

async function start(gateway: Gateway, more: Partial<Surroundings> = {}): Promise<string> {
  return startGateway(gateway, { sluice: await grpcHost(sluice), app: app.host, folder, ...more });
}

const isAnswer = ({ msg }: LogLine): boolean => msg === 'call answered';

/** Resolves when MANY requests in a row went to other replicas: this replica no longer gets any. */
async function untilUnasked(replica: ReplicaProcess, statuses: readonly number[]): Promise<void> {
  let calls = 0;
  let since = 0;
  await until(() => {
    const now = replica.log.filter(isAnswer).length;
    if (now > calls) since = statuses.length;
    calls = now;
    return statuses.length >= since + MANY;
  });
}

/** For a Sluice with TLS, as in docs/envoy.md. */
function checkingCertificate(caFile: string, name: string): Replacements {
  return [
    [
      '      # More calls may wait',
      `${yamlOfPage('alpn_protocols', 6)}      # More calls may wait`,
    ],
    ['/etc/envoy/sluice-ca.pem', caFile],
    ['sni: sluice.example', `sni: ${name}`],
    ['exact: sluice.example', `exact: ${name}`],
  ];
}

/** Changes the timeout of the filter for waiting requests. */
function givingUpAfter(time: string): Replacements {
  return [[' timeout: 3600s', ` timeout: ${time}`]];
}

// `npm test` says if Envoy is missing.
const describeWithEnvoy = envoy().program === '' ? describe.skip : describe;

describeWithEnvoy('Envoy as a gateway', () => {
  beforeEach(async () => {
    sluice = await startReplica(SETTINGS);
  });

  test.each([
    ['at once', '/orders/1?a=b'],
    ['that may wait', '/reports/1?a=b'],
  ])('passes a request %s unchanged', async (_, path) => {
    const url = await start(envoy());
    const headers = { Authorization: 'Basic of-the-app', Cookie: 'a=b' };
    const answer = await fetch(url + path, { method: 'PUT', body: 'content', headers });

    expect([answer.status, await answer.text()]).toEqual([200, 'served']);
    expect(answer.headers.get('x-ratelimit-remaining')).toBe('0');
    expect(app.served).toMatchObject([
      {
        method: 'PUT',
        url: path,
        body: 'content',
        headers: { authorization: 'Basic of-the-app', cookie: 'a=b' },
      },
    ]);
  });

  test('tells a denied client when to come back, and does not ask the app', async () => {
    const url = await start(envoy());
    await send(url, 'GET', '/');
    const refused = await send(url, 'POST', '/');

    expect(refused.status).toBe(429);
    expect(refused.headers).toMatchObject({
      'retry-after': expect.stringMatching(TEN_MINUTES) as string,
      'x-ratelimit-limit': '1',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': expect.stringMatching(TEN_MINUTES) as string,
    });
    expect(app.served).toHaveLength(1);
  });

  test('counts a client by its connection, whatever its headers say', async () => {
    const url = await start(envoy());
    await send(url, 'GET', '/', { 'X-Forwarded-For': '192.0.2.1' });
    const other = await send(url, 'GET', '/', { 'X-Forwarded-For': '192.0.2.2' });

    expect(other.status).toBe(429);
    expect((await debugState(sluice.url, PLAIN)).NumApprovedThisWindow).toBe(1);
  });

  test('counts each route separately, also for links on other sites', async () => {
    const url = await start(envoy());

    expect((await send(url, 'GET', '/', OF_BROWSER)).text).toBe('served');
    expect((await send(url, 'GET', '/reports/1', OF_BROWSER)).text).toBe('served');
  });

  test.each([
    ['without a body', requestText('GET', '/reports/1')],
    ['with a body', `${requestText('POST', '/reports/1', { 'Content-Length': '7' })}content`],
    [
      'with an unfinished body',
      `${requestText('POST', '/reports/1', { 'Content-Length': '7' })}con`,
    ],
  ])('withdraws a waiting request %s when its client disconnects', async (_, text) => {
    const url = await start(envoy());
    await send(url, 'GET', '/reports/1');
    const client = await openConnection(url);
    client.write(text);
    await untilWaiting(sluice.url, WAITING, 1);
    client.disconnect();

    await untilWaiting(sluice.url, WAITING, 0);
    await sluice.logged(({ status }) => status === 499);
    expect((await debugState(sluice.url, WAITING)).NumApprovedThisWindow).toBe(1);
  });

  test('denies a request at once if its turn comes after Envoy gives up', async () => {
    const url = await start(envoy(givingUpAfter('30s')));
    await send(url, 'GET', '/reports/1');
    const refused = await send(url, 'GET', '/reports/1');

    expect(refused.status).toBe(429);
    expect(refused.headers['retry-after']).toMatch(TEN_MINUTES);
  });

  test('lets more requests wait at once than one connection to Sluice accepts', async () => {
    await restartSluice({ MAX_REQUESTS: String(MANY) });
    const url = await start(envoy());
    const ids: string[] = [];
    while (ids.length < MANY) ids.push(await approve(sluice.url, WAITING));
    const waiting = Array.from({ length: MANY }, () => begin(url, 'GET', '/reports/1'));
    await untilWaiting(sluice.url, WAITING, MANY);

    expect((await send(url, 'GET', '/')).status).toBe(200);
    for (const id of ids) await send(sluice.url, 'DELETE', `${ratePath(WAITING)}/${id}`);
    const answers = await Promise.all(waiting.map(({ answer }) => answer));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
  });

  test('sends its token to Sluice, and passes no request without one', async () => {
    const caller = { name: 'gateway', token: 'token-of-the-gateway', scopes: ['check'] };
    await restartSluice({ AUTH_TOKENS_FILE: await tokenFile(folder, caller) });
    const without = await start(envoy());
    const refused = await send(without, 'GET', '/', bearer(caller));
    const url = await start(envoy(), { authorization: bearer(caller).Authorization });
    const passed = await send(url, 'GET', '/', { Authorization: 'Bearer of-the-app' });

    expect(refused.status).toBe(503);
    expect(passed.text).toBe('served');
    expect(app.served.map(({ headers }) => headers.authorization)).toEqual(['Bearer of-the-app']);
  });

  test('can take several approvals for a request of a route, all or none', async () => {
    await restartSluice({ MAX_REQUESTS: '5' });
    const url = await start(envoy(TAKING_THREE));
    const passed = await send(url, 'GET', '/');
    const refused = await send(url, 'GET', '/');

    expect([passed.status, refused.status]).toEqual([200, 429]);
    expect(passed.headers['x-ratelimit-remaining']).toBe('2');
    expect((await debugState(sluice.url, PLAIN)).NumApprovedThisWindow).toBe(3);
  });

  test('fails requests, also waiting ones, while Sluice is down', async () => {
    const url = await start(envoy());
    await approve(sluice.url, WAITING);
    const waiting = begin(url, 'GET', '/reports/1');
    await untilWaiting(sluice.url, WAITING, 1);
    await sluice.kill('SIGKILL');

    const refused = [await send(url, 'GET', '/'), await waiting.answer];
    expect(refused.map(({ status }) => status)).toEqual([503, 503]);
    expect(refused[0]!.headers['retry-after']).toBe('1');
    expect(app.served).toEqual([]);
  });

  test('passes requests while Sluice is down, if its file says so', async () => {
    const url = await start(envoy(), { isOpen: true });
    await send(url, 'GET', '/');
    expect((await send(url, 'GET', '/')).status).toBe(429);
    await sluice.kill('SIGKILL');

    expect((await send(url, 'GET', '/')).text).toBe('served');
    expect((await send(url, 'GET', '/reports/1')).text).toBe('served');
  });

  test('fails requests, also waiting ones, while Sluice does not answer', async () => {
    const url = await start(envoy([['interval: 10s, timeout: 5s', 'interval: 1s, timeout: 1s']]));
    await approve(sluice.url, WAITING);
    const waiting = begin(url, 'GET', '/reports/1');
    await untilWaiting(sluice.url, WAITING, 1);
    sluice.signal('SIGSTOP');

    const refused = [await send(url, 'GET', '/'), await waiting.answer];
    expect(refused.map(({ status }) => status)).toEqual([503, 503]);
    expect(app.served).toEqual([]);
  });

  test('lets requests that wait at a stopping replica go on waiting', async () => {
    await restartSluice(DRAINING);
    const url = await start(envoy());
    const id = await approve(sluice.url, WAITING);
    const waiting = begin(url, 'GET', '/reports/1');
    await untilWaiting(sluice.url, WAITING, 1);
    sluice.signal('SIGTERM');
    await until(async () => (await send(url, 'GET', '/')).status === 503);
    await send(sluice.url, 'DELETE', `${ratePath(WAITING)}/${id}`);

    expect((await waiting.answer).text).toBe('served');
  });
});

describeWithEnvoy('Envoy before a Sluice with a certificate', () => {
  const tls = useTls();
  beforeEach(async () => {
    sluice = await startReplica({ ...SETTINGS, ...tls.settings });
  });

  test.each([
    ['connects if the name matches the certificate', 'localhost', 200],
    ['fails requests if the name does not match', 'another.example', 503],
  ])('%s', async (_, name, status) => {
    const url = await start(envoy(checkingCertificate(tls.authority.caFile, name)));

    expect((await send(url, 'GET', '/')).status).toBe(status);
  });
});

describeWithEnvoy('Envoy before two replicas', () => {
  const redis = useRedis();

  test('fails no request while one of them stops', async () => {
    const settings = {
      ...SETTINGS,
      REDIS_URL: redis.url,
      STORE_TIMEOUT_MILLIS: '30000',
      MAX_REQUESTS: '1000000',
      LOG_2XX: 'true',
      ...DRAINING,
    };
    const [first, second] = await Promise.all([startReplica(settings), startReplica(settings)]);
    const url = await startGateway(envoy(), {
      sluice: `${await grpcHost(first)},${await grpcHost(second)}`,
      app: app.host,
      folder,
    });
    const statuses: number[] = [];
    let isOver = false;
    const flow = async (): Promise<void> => {
      while (!isOver) statuses.push((await send(url, 'GET', '/')).status);
    };
    const flowing = [flow(), flow(), flow()];
    await Promise.all([first, second].map((replica) => replica.logged(isAnswer)));

    first.signal('SIGTERM');
    await untilUnasked(first, statuses);
    // The second signal ends the delay.
    expect(await first.kill('SIGTERM')).toBe(0);
    const before = statuses.length;
    await until(() => statuses.length >= before + MANY);
    isOver = true;
    await Promise.all(flowing);

    expect(new Set(statuses)).toEqual(new Set([200]));
  });
});
