import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

import { CHILD_PATH } from '../../support/child-environment.js';
import { freePort } from '../../support/free-port.js';
import { killReplicas, startReplica } from '../../support/replica-process.js';
import { useTls } from '../../support/use-tls.js';

const PROGRAM = fileURLToPath(new URL('../../../dist/healthcheck.js', import.meta.url));

const tls = useTls();
afterEach(killReplicas);

/** @returns the exit code, and the error output */
async function checkHealth(
  environment: Readonly<Record<string, string>>,
): Promise<{ code: unknown; stderr: string }> {
  const child = spawn(process.execPath, [PROGRAM], {
    env: { PATH: CHILD_PATH, ...environment },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
  const [code] = (await once(child, 'close')) as unknown[];
  return { code, stderr };
}

const portOf = ({ url }: { readonly url: string }): string => new URL(url).port;

test('a replica that serves is healthy', async () => {
  const replica = await startReplica({ HOST: '0.0.0.0' });
  expect(await checkHealth({ PORT: portOf(replica) })).toEqual({ code: 0, stderr: '' });
});

test('a replica that listens on one address is asked at that address', async () => {
  const replica = await startReplica({ HOST: '127.0.0.2' });
  const environment = { HOST: '127.0.0.2', PORT: portOf(replica) };
  expect(await checkHealth(environment)).toEqual({ code: 0, stderr: '' });
});

test('a replica that speaks TLS is asked over TLS', async () => {
  const replica = await startReplica(tls.settings);
  const port = { PORT: portOf(replica) };
  expect(await checkHealth({ ...port, ...tls.settings })).toEqual({ code: 0, stderr: '' });
  expect((await checkHealth(port)).code).toBe(1);
});

test('the check says why it fails if no replica serves', async () => {
  const { code, stderr } = await checkHealth({ PORT: String(await freePort()) });
  expect(code).toBe(1);
  expect(stderr).toMatch(/^connect ECONNREFUSED .*\n$/);
});

test('a replica that hangs is not healthy', async () => {
  const replica = await startReplica({});
  replica.signal('SIGSTOP');
  expect(await checkHealth({ PORT: portOf(replica) })).toEqual({
    code: 1,
    stderr: 'no answer within 3000 ms\n',
  });
});
