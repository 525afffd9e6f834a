import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';

import { acceptsConnections } from '../../support/accepts-connections.js';
import { debugState } from '../../support/debug-state.js';
import { readPage, ROOT } from '../../support/docs/pages.js';
import { guideBlocks, useGuidesApp } from '../../support/docs/guides-app.js';
import { freePort } from '../../support/free-port.js';
import { provided } from '../../support/provided.js';
import { type RedisServer, startRedisServer } from '../../support/redis-server.js';
import { until } from '../../support/until.js';

const EXAMPLES = join(ROOT, 'docs/examples');

const run = promisify(execFile);
const python = provided('SLUICE_TEST_CLIENT_PYTHON');
// `npm test` says if Python is missing.
const describeWithPython = python === '' ? describe.skip : describe;

const sluice = useGuidesApp();

const environment = () => ({
  PATH: process.env.PATH,
  PYTHONPATH: join(ROOT, 'clients/python/src'),
  PYTHONDONTWRITEBYTECODE: '1',
  SLUICE_URL: sluice.url,
});

/** What the page shows of a command. */
function shownOf(command: string): string {
  const block = guideBlocks().find(({ code }) => code.trim() === command);
  if (block?.prints === undefined) throw new Error(`the page does not show what ${command} prints`);
  return block.prints;
}

const started: ChildProcess[] = [];
afterAll(async () => {
  for (const child of started) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
});

function start(words: readonly string[], more: Record<string, string>): ChildProcess {
  const env = { ...environment(), ...more };
  const child = spawn(python, words, { cwd: EXAMPLES, env, stdio: ['ignore', 'ignore', 'pipe'] });
  started.push(child);
  return child;
}

describeWithPython('a recipe in Python', () => {
  describe('for Celery', () => {
    let redis: RedisServer;
    beforeAll(async () => {
      redis = await startRedisServer();
    });
    afterAll(() => redis.stop());

    test('has its tasks wait and retry in the processes of a worker', async () => {
      const broker = { BROKER_URL: redis.address };
      const options = ['--concurrency', '2', '--loglevel', 'INFO', '--without-mingle'];
      const words = ['-m', 'celery', '--app', 'celery_tasks', 'worker', ...options];
      const worker = start(words, broker);
      let log = '';
      worker.stderr!.on('data', (data: Buffer) => (log += data.toString()));
      await until(() => log.includes(' ready.'));

      const { stdout } = await run(python, ['celery_tasks.py'], {
        cwd: EXAMPLES,
        env: { ...environment(), ...broker },
      });

      expect(stdout.trimEnd()).toBe(shownOf('python3 docs/examples/celery_tasks.py'));
      expect(await debugState(sluice.url, 'exports')).toMatchObject({ NumApprovedThisWindow: 0 });
      worker.kill('SIGTERM');
      await once(worker, 'exit');
    });
  });

  test('for FastAPI has limits for each tenant, and holds a permit until its stream ends', async () => {
    const port = await freePort();
    const app = start(['fastapi_app.py'], { PORT: String(port) });
    const errors = text(app.stderr!);
    const address = `http://127.0.0.1:${port}/chat`;
    await until(() => acceptsConnections(port));

    const [, tenant = ''] = /'X-Tenant: (.*?)'/.exec(readPage('docs/web-frameworks.md')) ?? [];
    const answer = await fetch(address, { headers: { 'X-Tenant': tenant } });
    const shown = shownOf(`curl -s -D - -H 'X-Tenant: ${tenant}' localhost:8118/chat`);
    const headers = ['content-type', 'ratelimit-policy', 'ratelimit'].map(
      (name) => `${name}: ${answer.headers.get(name) ?? ''}`,
    );
    expect(`${headers.join('\n')}\n\n${(await answer.text()).trimEnd()}`).toBe(
      shown.replace(/^HTTP.*\n/, ''),
    );

    app.kill('SIGINT');
    expect(await errors).toBe('');
  });
});
