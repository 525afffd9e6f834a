import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { TEST_SETTINGS } from '../support/replica-process.js';
import { useTemporaryFolder } from '../support/temporary-folder.js';
import { ROOT } from './repository-files.js';
import { servingPort } from './serving-port.js';

interface Package {
  readonly version: string;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
}

const folder = useTemporaryFolder();
const run = promisify(execFile);

/**
 * Packs the built project, and installs it in `folder` with the packages of its lock file. npm takes these from its
 * cache, where they are since the project was installed.
 */
function install(): void {
  const packed = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const printed = execFileSync('npm', packed, { cwd: ROOT, encoding: 'utf8' });
  const [{ filename }] = JSON.parse(printed) as [{ filename: string }];
  const dependencies = { sluice: `file:${filename}` };
  const text = readFileSync(join(ROOT, 'package-lock.json'), 'utf8');
  const { packages } = JSON.parse(text) as { packages: Record<string, Package> };
  const { '': sluice, ...others } = packages;
  const needed = Object.entries(others).filter(([, one]) => !one.dev && !one.devOptional);
  const lock = {
    lockfileVersion: 3,
    packages: {
      '': { dependencies },
      'node_modules/sluice': { ...sluice, resolved: dependencies.sluice },
      ...Object.fromEntries(needed),
    },
  };
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ dependencies }));
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(lock));
  const installed = ['ci', '--prefer-offline', '--ignore-scripts', '--no-audit', '--no-fund'];
  execFileSync('npm', installed, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
}

/** Starts the service with its command, calls back with its address, and stops it. */
async function withService(use: (url: string) => Promise<void>): Promise<void> {
  const child = spawn('npx', ['--no', 'sluice'], {
    cwd: folder,
    env: { ...process.env, ...TEST_SETTINGS, NODE_OPTIONS: '' },
    // A group of its own, so that the children of npx end with it.
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const closed = once(child, 'close');
  try {
    const port = await servingPort(child);
    await use(`http://127.0.0.1:${String(port)}`);
  } finally {
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid!, 'SIGTERM');
    await closed;
  }
}

const PROGRAM = `
import { SluiceClient } from 'sluice/client';
const sluice = new SluiceClient(process.argv[2]);
const options = { maxRequests: 1 };
const [first, second] = await Promise.all([sluice.check('a', options), sluice.check('a')]);
const waiting = sluice.wait('a');
const released = await sluice.release('a', first.requestId);
console.log(JSON.stringify([first.approved, second.approved, released, (await waiting).approved]));
`;

const TYPED = `
import {
  limitedFetch,
  rateLimit,
  SluiceClient,
  SluiceDeniedError,
  SluicePermitLostError,
} from 'sluice/client';

const client = new SluiceClient({ url: 'http://localhost:8080', token: () => 'a', timeoutMillis: 1 });
const decision = await client.check('a', { maxRequests: 1, signal: AbortSignal.timeout(1) });
// @ts-expect-error: only an approval has an id
decision.requestId;
const id: string = decision.approved ? decision.requestId : String(decision.retryAfterSeconds);
const released: boolean = await client.release('a', id);
const seven: number = await client.withPermit('a', async () => 7, { wait: false });
const renewed: boolean = await client.renew('a', id, { holdMillis: 60_000 });
const cut: string = await client.withPermit(
  'a',
  (signal, requestId) => {
    const { reason } = signal;
    return reason instanceof SluicePermitLostError ? reason.requestId : requestId;
  },
  { hits: 2, holdMillis: false },
);
const answer: Response = await limitedFetch(client, { keyOf: ({ host }) => host })('http://a');
export const middleware = rateLimit<{ ip: string }>(client, { keyOf: ({ ip }) => ip });
export const all = [released, seven, renewed, cut, answer, new SluiceDeniedError('a', 1).status];
// @ts-expect-error: there is no such option
await client.wait('a', { canWait: true });
`;

describe('the npm package in an empty folder', () => {
  beforeAll(install);

  test('starts with one command, and its client can ask it', async () => {
    writeFileSync(join(folder, 'ask.mjs'), PROGRAM);

    await withService(async (url) => {
      const { stdout } = await run(process.execPath, ['ask.mjs', url], { cwd: folder });

      expect(JSON.parse(stdout)).toEqual([true, false, true, true]);
      for (const path of ['/openapi.json', '/docs', '/docs/swagger-ui-bundle.js']) {
        expect([path, (await fetch(url + path)).status]).toEqual([path, 200]);
      }
    });
  });

  test.each([
    ['of a browser', ['--lib', 'ES2023,DOM']],
    [
      'of Node',
      ['--lib', 'ES2023', '--types', 'node', '--typeRoots', join(ROOT, 'node_modules/@types')],
    ],
  ])('has types that compile together with the types %s', async (_, types) => {
    writeFileSync(join(folder, 'typed.mts'), TYPED);
    const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
    const options = ['--noEmit', '--strict', '--target', 'ES2023', '--module', 'NodeNext'];

    const compiled = run(process.execPath, [compiler, ...options, ...types, 'typed.mts'], {
      cwd: folder,
    }).catch((error: unknown) => error);

    expect(await compiled).toMatchObject({ stdout: '' });
  });
});
