import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { untilWaiting } from '../../support/debug-state.js';
import { ROOT } from '../../support/docs/pages.js';
import { extent } from '../../support/extent.js';
import { approve, approvedId, begin, ratePath, send } from '../../support/http-client.js';
import { provided } from '../../support/provided.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';
import { useReplicas } from '../../support/use-replicas.js';

const WAITERS = extent(30, 100);
const TIMEOUT_MILLIS = 120_000;

const python = provided('SLUICE_TEST_CLIENT_PYTHON');
// `npm test` says if Python is missing.
const eachWithPython = python === '' ? test.skip.each : test.each;
const start = useReplicas(useRedis());

/** Waits of both Python clients, each of which prints its number when it is approved. */
function startWaiters(key: string, urls: readonly string[]) {
  const words = ['-m', 'tests.waiters', key, String(WAITERS), ...urls];
  const process = execFile(python, words, {
    cwd: join(ROOT, 'clients/python'),
    env: { PYTHONPATH: 'src', PYTHONDONTWRITEBYTECODE: '1' },
  });
  const approved: number[] = [];
  let errors = '';
  createInterface({ input: process.stdout! }).on('line', (line) => approved.push(Number(line)));
  process.stderr!.on('data', (data: string) => (errors += data));
  const ended = once(process, 'close');
  return {
    approved,
    /** Rejects with the errors of the clients. */
    end: async () => {
      await ended;
      if (errors !== '' || process.exitCode !== 0) throw new Error(errors);
    },
  };
}

eachWithPython([
  ['is killed', 'SIGKILL'],
  ['stops', 'SIGTERM'],
  ['freezes', 'SIGSTOP'],
] as const)(
  'if the replica of all Python clients that wait %s, they are approved in the order of their arrival',
  async (_, signal) => {
    const replicas = await start(3, { MAX_REQUESTS: '1', WINDOW_MILLIS: '3600000' });
    const [ends, second, third] = replicas.map(({ url }) => url) as [string, string, string];
    const key = uniqueKey();
    const held = await approve(third, key, '?holdMillis=600000');
    const waiters = startWaiters(key, [ends, second, third]);
    await untilWaiting(third, key, WAITERS);

    replicas[0]!.signal(signal);
    const newcomer = begin(third, 'POST', `${ratePath(key)}?canWait=true`);
    await untilWaiting(third, key, WAITERS + 1);
    await send(third, 'DELETE', `${ratePath(key)}/${held}`);

    await waiters.end();
    expect(waiters.approved).toEqual(Array.from({ length: WAITERS }, (__, i) => i));
    // Nobody would have been approved after the newcomer, whose approval counts for an hour.
    approvedId(await newcomer.answer);
  },
  TIMEOUT_MILLIS,
);
