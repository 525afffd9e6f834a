import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

import { acceptsConnections } from '../../support/accepts-connections.js';
import { until } from '../../support/until.js';

const running = new Set<ChildProcess>();

/** Starts a gateway, and resolves when it accepts connections on this port. */
export async function startGatewayProcess(
  program: string,
  args: readonly string[],
  { folder, port }: { readonly folder: string; readonly port: number },
): Promise<void> {
  const environment = { PATH: process.env.PATH, HOME: folder };
  const child = spawn(program, args, { cwd: folder, env: environment });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (data: Buffer) => (output += data.toString()));
  }
  running.add(child);
  child.once('exit', () => running.delete(child));
  await until(() => {
    if (!running.has(child)) throw new Error(`${program} ended: ${output}`);
    return acceptsConnections(port);
  });
}

/** Kills every gateway that the test file has started. */
export async function killGateways(): Promise<void> {
  await Promise.all(
    [...running].map(async (child) => {
      child.kill('SIGTERM');
      await once(child, 'exit');
    }),
  );
}
