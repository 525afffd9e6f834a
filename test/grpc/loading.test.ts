import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { approve } from '../support/http-client.js';
import { killReplicas, startFailingReplica, startReplica } from '../support/replica-process.js';
import { useTemporaryFolder } from '../support/temporary-folder.js';
import { uniqueKey } from '../support/unique-key.js';

const PRELOAD = new URL('../tracing/list-loaded-modules.mjs', import.meta.url).href;

const folder = useTemporaryFolder();
afterEach(killReplicas);

/** The modules for gRPC of a replica that has served and stopped. */
async function loadedForGrpc(settings: Readonly<Record<string, string>>): Promise<string[]> {
  const file = join(folder, uniqueKey());
  const replica = await startReplica({
    ...settings,
    NODE_OPTIONS: `--import=${PRELOAD}`,
    LOADED_MODULES_FILE: file,
  });
  await approve(replica.url, uniqueKey());
  await replica.kill('SIGTERM');
  const all = JSON.parse(readFileSync(file, 'utf8')) as string[];
  expect(all.some((path) => path.includes('ioredis'))).toBe(true);
  return all.filter((path) => /@grpc|grpc-health-check|protobufjs|dist.grpc/.test(path));
}

test('without GRPC_PORT nothing for gRPC is loaded', async () => {
  expect(await loadedForGrpc({})).toEqual([]);
});

test('with GRPC_PORT it is', async () => {
  expect(await loadedForGrpc({ GRPC_PORT: '0' })).not.toEqual([]);
});

test('a port that is taken ends the process with one line', async () => {
  const taking = await startReplica({ GRPC_PORT: '0' });
  const { grpcPort } = await taking.logged(({ msg }) => msg === 'serving');
  const { code, stderr } = await startFailingReplica({ GRPC_PORT: String(grpcPort) });

  expect(code).toBe(1);
  expect(stderr).toMatch(/^listen EADDRINUSE: [^\n]*\n$/);
});
