import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { chmod, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

import { CHILD_PATH } from '../support/child-environment.js';
import { pages, readPage, ROOT } from '../support/docs/pages.js';
import { freePort } from '../support/free-port.js';
import { killReplicas, startReplica } from '../support/replica-process.js';
import { send } from '../support/http-client.js';
import { useTemporaryFolder } from '../support/temporary-folder.js';

const EXAMPLES = join(ROOT, 'docs/examples');
/** Each script with the arguments in front of the work, and its key. */
const SCRIPTS: Readonly<Record<string, { args: readonly string[]; key: string }>> = {
  'deploy.sh': { args: [], key: 'deploy-shop' },
  'list.sh': { args: ['assistant', 'lane=batch', '50'], key: 'assistant' },
  'llm.sh': { args: ['50'], key: 'llm' },
  'permit.sh': { args: ['database'], key: 'database' },
  'turn.sh': { args: ['vendor'], key: 'vendor' },
  'wait.sh': { args: ['waited'], key: 'waited' },
};
const scripts = Object.entries(SCRIPTS).map(([script, { args, key }]) => ({ script, args, key }));

/** The keys whose checks name a lane. */
const RULES = { keys: [{ key_pattern: 'assistant', queue: { lanes: [{ name: 'batch' }] } }] };

const folder = useTemporaryFolder();
const rulesFile = join(folder, 'rules.json');
beforeAll(() => writeFile(rulesFile, JSON.stringify(RULES)));
const servers: Server[] = [];
let worked = 0;

/** A program that is not Sluice. */
async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  servers.push(server);
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Runs a script with work that leaves a mark. */
async function run(
  script: string,
  url: string | undefined,
  work = 'echo 7',
  path = CHILD_PATH,
): Promise<{ code: number | null; hasWorked: boolean; stderr: string }> {
  worked += 1;
  const mark = join(folder, `worked-${worked}`);
  const { args } = SCRIPTS[script]!;
  const child = spawn(
    'sh',
    [join(EXAMPLES, script), ...args, 'sh', '-c', `touch '${mark}'; ${work}`],
    {
      env: { PATH: path, CURL_HOME: folder, ...(url === undefined ? {} : { SLUICE_URL: url }) },
      stdio: ['ignore', 'ignore', 'pipe'],
    },
  );
  let stderr = '';
  child.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, hasWorked: existsSync(mark), stderr };
}

afterAll(async () => {
  for (const server of servers) server.closeAllConnections();
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  await killReplicas();
});

test('the scripts of the pages are known', () => {
  const files = readdirSync(EXAMPLES).filter((file) => file.endsWith('.sh'));
  expect(files.sort()).toEqual(Object.keys(SCRIPTS).sort());
});

test('no command of a page takes the body of an error for an answer', () => {
  const careless = pages().flatMap((page) =>
    [...readPage(page).matchAll(/\$\(curl (?!-\w*f)[^\n]*/g)].map(([text]) => `${page}: ${text}`),
  );
  expect(careless).toEqual([]);
});

describe('a script of the pages does not run its work, and fails,', () => {
  const ID = '9f654323-416e-402c-8b39-e87fc0228176';
  let full: string;
  beforeAll(async () => {
    const replica = await startReplica({
      CONFIG_FILE: rulesFile,
      WINDOW_MILLIS: '3600000',
      MAX_REQUESTS: '100',
      MAX_REQUESTS_IN_QUEUE: '0',
    });
    full = replica.url;
    for (const { key } of scripts) {
      const { status } = await send(full, 'POST', `/rate/${key}?hits=100&holdMillis=3600000`);
      expect(status).toBe(200);
    }
  });

  const CASES: readonly (readonly [string, () => string | undefined | Promise<string>])[] = [
    ['if the queue is full', () => full],
    ['if nothing listens', async () => `http://127.0.0.1:${await freePort()}`],
    ['if it has no address', () => undefined],
    ['if the answer is an error', () => serve((_, response) => response.writeHead(503).end(ID))],
    ['if the connection is cut', () => serve((request) => request.socket.destroy())],
    ['if another program answers', () => serve((_, response) => response.end('<html>OK</html>'))],
  ];

  describe.each(CASES)('%s', (_name, urlOf) => {
    test.each(scripts)('$script', async ({ script }) => {
      const { code, hasWorked } = await run(script, await urlOf());
      expect({ hasWorked, hasFailed: code !== 0 }).toEqual({ hasWorked: false, hasFailed: true });
    });
  });
});

describe('with an approval', () => {
  let url: string;
  beforeAll(async () => {
    ({ url } = await startReplica({ CONFIG_FILE: rulesFile, WINDOW_MILLIS: '3600000' }));
  });

  const held = async (key: string): Promise<unknown> =>
    ((await send(url, 'GET', `/debug/${key}`)).json() as { NumHeld?: number }).NumHeld ?? 0;

  test.each(scripts)('$script runs its work, and ends without holds', async ({ script, key }) => {
    expect(await run(script, url)).toMatchObject({ code: 0, hasWorked: true });
    expect(await held(key)).toBe(0);
  });

  test.each(scripts)('$script fails as its work does', async ({ script, key }) => {
    expect(await run(script, url, 'exit 3')).toMatchObject({ code: 3, hasWorked: true });
    expect(await held(key)).toBe(0);
  });

  test('permit.sh ends its work if a renewal fails', async () => {
    const id = '{"request_id":"9f654323-416e-402c-8b39-e87fc0228176"}';
    const lost = await serve((request, response) => {
      if (request.method === 'POST') response.end(id);
      else response.writeHead(404).end();
    });
    // Instead of the ten seconds between two renewals.
    const sleep = join(folder, 'sleep');
    await writeFile(sleep, '#!/bin/sh\n');
    await chmod(sleep, 0o755);
    const path = `${folder}:${CHILD_PATH}`;
    const { code, stderr } = await run('permit.sh', lost, 'exec tail -f /dev/null', path);
    expect(code).toBe(143);
    expect(stderr).toContain('404');
  });
});
