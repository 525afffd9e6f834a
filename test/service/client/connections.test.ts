import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { CHILD_PATH } from '../../support/child-environment.js';
import { untilWaiting } from '../../support/debug-state.js';
import { approve, ratePath, send } from '../../support/http-client.js';
import {
  KEEP_ALIVE_TIMER,
  RETRANSMISSION_TIMER,
  type TcpTimer,
  timersOf,
} from '../../support/tcp-timers.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useApp } from '../../support/use-apps.js';
import { useTls } from '../../support/use-tls.js';

const EXAMPLE = fileURLToPath(new URL('../../../clients/node/examples/check.mjs', import.meta.url));

const tls = useTls();
const app = useApp(() => ({ ...tls.settings, WINDOW_MILLIS: '3600000' }));

test('the client asks over HTTPS if Node trusts the certificate', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [EXAMPLE], {
    env: {
      PATH: CHILD_PATH,
      SLUICE_URL: app.url,
      NODE_EXTRA_CA_CERTS: tls.authority.caFile,
    },
  });

  expect(stdout).toBe('first: true second: false\nafter a release: true\n');
});

const PROGRAM = fileURLToPath(new URL('../../support/client/wait-twice.mjs', import.meta.url));

let client: ChildProcess | undefined;
afterEach(() => client?.kill('SIGKILL'));

describe.each([
  ['HTTP', () => ({})],
  ['HTTPS', () => tls.settings],
])('a connection of the client (%s)', (_name, settings) => {
  const app = useApp(() => ({ ...settings(), WINDOW_MILLIS: '3600000', MAX_REQUESTS: '1' }));
  const timerOfWait = (): Promise<TcpTimer> =>
    until(async () => {
      // Connections of this test may be about to end.
      const timers = await timersOf(app.url, 'client');
      return timers.length === 1 && timers[0]!.kind !== RETRANSMISSION_TIMER && timers[0]!;
    });

  test('is asked for signs of life after 15 s of silence, in its first wait and in its second', async () => {
    const key = uniqueKey();
    const holder = await approve(app.url, key);
    client = spawn(process.execPath, [PROGRAM, app.url, key], {
      env: { PATH: CHILD_PATH, NODE_EXTRA_CA_CERTS: tls.authority.caFile },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await untilWaiting(app.url, key, 1);
    const first = await timerOfWait();
    const approved = once(client.stdout!, 'data');
    await send(app.url, 'DELETE', `${ratePath(key)}/${holder}`);
    await approved;
    await untilWaiting(app.url, key, 1);
    const second = await timerOfWait();

    for (const { kind, seconds } of [first, second]) {
      expect(kind).toBe(KEEP_ALIVE_TIMER);
      // Node's agent would ask each second.
      expect(seconds).toBeGreaterThan(1);
      expect(seconds).toBeLessThanOrEqual(15);
    }
  });
});
