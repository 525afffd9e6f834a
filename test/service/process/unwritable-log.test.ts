import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { CHILD_PATH } from '../../support/child-environment.js';
import { freePort } from '../../support/free-port.js';
import { approve, send } from '../../support/http-client.js';
import { scrape } from '../../support/prometheus-text.js';
import { openConnection, requestText } from '../../support/raw-http.js';
import { TEST_SETTINGS } from '../../support/replica-process.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';

/** Their lines take more than a replica keeps of lines that wait, with what a pipe and its reader hold. */
const REQUESTS = 800;
const AT_A_TIME = 50;
/** Lines have the headers of requests. */
const HEADERS = { 'X-Long': 'x'.repeat(2000) };

/** Sends a replica with `LOG_2XX` many requests whose log lines are long. Resolves when all are answered. */
async function logMuch(url: string): Promise<void> {
  const connection = await openConnection(url);
  const requests = requestText('GET', '/healthz', HEADERS).repeat(AT_A_TIME);
  let answers = 0;
  let looked = 0;
  const countAnswers = (): number => {
    const { received } = connection;
    for (;;) {
      const found = received.indexOf('HTTP/1.1 200', looked);
      if (found === -1) return answers;
      answers += 1;
      looked = found + 1;
    }
  };
  for (let sent = AT_A_TIME; sent <= REQUESTS; sent += AT_A_TIME) {
    connection.write(requests);
    await until(() => countAnswers() >= sent);
  }
  connection.disconnect();
}

const MAIN = 'dist/main.js';

let folder: string;
let child: ChildProcess | undefined;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sluice-log-'));
});
afterEach(async () => {
  if (child?.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
});
afterAll(() => rm(folder, { recursive: true }));

/** @param shell how a shell starts the program, if one does */
async function start(stdout: 'pipe' | number, shell?: string): Promise<string> {
  const port = String(await freePort());
  const env = { PATH: CHILD_PATH, ...TEST_SETTINGS, PORT: port, LOG_2XX: 'true' };
  const [program, ...words] =
    shell === undefined
      ? [process.execPath, MAIN]
      : ['/bin/sh', '-c', shell, process.execPath, MAIN, join(folder, 'log')];
  child = spawn(program, words, { env, stdio: ['ignore', stdout, 'inherit'] });
  const url = `http://127.0.0.1:${port}`;
  await until(() => send(url, 'GET', '/healthz').catch(() => undefined));
  return url;
}

const droppedLines = async (url: string): Promise<number> =>
  (await scrape(url)).value('ratelimit_dropped_log_lines_total');

async function stop(): Promise<number | NodeJS.Signals | null> {
  child!.kill('SIGTERM');
  await once(child!, 'exit');
  return child!.exitCode ?? child!.signalCode;
}

async function startWithFullDisk(): Promise<string> {
  const device = openSync('/dev/full', 'w');
  try {
    return await start(device);
  } finally {
    closeSync(device);
  }
}

test.each([
  ['goes to a full disk', startWithFullDisk],
  [
    'has reached the largest size of a file',
    () => start('pipe', 'ulimit -f 8; exec "$0" "$1" > "$2"'),
  ],
  [
    'goes to a pipe that its reader has closed',
    async () => {
      const url = await start('pipe');
      child!.stdout!.destroy();
      return url;
    },
  ],
  ['goes to a pipe that is not read', () => start('pipe', 'exec "$0" "$1"')],
])('a replica whose log %s decides, counts the dropped lines, and stops', async (_what, begin) => {
  const url = await begin();
  child!.stdout?.pause();
  await logMuch(url);
  expect((await send(url, 'GET', '/healthz')).status).toBe(200);
  await approve(url, uniqueKey());
  expect(await droppedLines(url)).toBeGreaterThan(0);
  expect(await stop()).toBe(0);
});

test('a replica whose standard output is closed decides and stops', async () => {
  const url = await start('pipe', 'exec "$0" "$1" >&-');
  await logMuch(url);
  await approve(url, uniqueKey());
  expect(await stop()).toBe(0);
});

test('a replica says how many lines it has dropped when its log is read again', async () => {
  const url = await start('pipe');
  await logMuch(url);
  expect(await droppedLines(url)).toBeGreaterThan(0);
  const lines: Record<string, unknown>[] = [];
  createInterface({ input: child!.stdout! }).on('line', (line) => {
    lines.push(JSON.parse(line) as Record<string, unknown>);
  });
  const said = await until(() => lines.find(({ msg }) => String(msg).startsWith('log lines')));
  // The line of the first scrape may also have been dropped.
  expect(said).toMatchObject({ level: 'warn', lines: await droppedLines(url) });
  await approve(url, uniqueKey());
  expect(await stop()).toBe(0);
});
