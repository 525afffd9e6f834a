import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { acceptsConnections } from '../../support/accepts-connections.js';
import { freePort } from '../../support/free-port.js';
import { type Answer, send } from '../../support/http-client.js';
import { loadedBy } from '../../support/loaded-modules.js';
import { killReplicas, startReplica } from '../../support/replica-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { until } from '../../support/until.js';

const folder = useTemporaryFolder();
afterEach(killReplicas);

/** The modules for gRPC of a replica that has served and stopped. */
async function loadedForGrpc(settings: Readonly<Record<string, string>>): Promise<string[]> {
  const { all } = await loadedBy(settings, folder);
  expect(all.some((path) => path.includes('ioredis'))).toBe(true);
  return all.filter((path) => /@grpc|grpc-health-check|protobufjs|dist.grpc/.test(path));
}

test('no module for gRPC is loaded without GRPC_PORT', async () => {
  expect(await loadedForGrpc({})).toEqual([]);
});

test('the modules for gRPC are loaded with GRPC_PORT', async () => {
  expect(await loadedForGrpc({ GRPC_PORT: '0' })).not.toEqual([]);
});

test('GET /readyz is 503 until the gRPC port listens', async () => {
  const [port, grpcPort] = [await freePort(), await freePort()];
  const mayListen = join(folder, 'may-listen');
  const started = startReplica({
    PORT: String(port),
    GRPC_PORT: String(grpcPort),
    LATE_PORT: String(grpcPort),
    LISTENS_WITH: mayListen,
    NODE_OPTIONS: `--import ${new URL('../../support/late-port.mjs', import.meta.url).href}`,
  });
  const reasons = new Set<string>();
  const isReady = async (): Promise<boolean> => {
    let answer: Answer;
    try {
      answer = await send(`http://127.0.0.1:${port}`, 'GET', '/readyz');
    } catch {
      return false; // The port does not listen yet.
    }
    if (answer.status !== 200) {
      reasons.add(answer.text);
      await writeFile(mayListen, '');
    }
    return answer.status === 200;
  };
  await until(isReady);

  expect(await acceptsConnections(grpcPort)).toBe(true);
  expect([...reasons]).toEqual(['starting']);
  await started;
});
