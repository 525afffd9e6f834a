import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { TEST_SETTINGS } from '../support/replica-process.js';
import { useTemporaryFolder } from '../support/temporary-folder.js';
import { uniqueKey } from '../support/unique-key.js';
import { useRedis } from '../support/use-redis.js';
import { ROOT } from './repository-files.js';

interface Package {
  readonly version: string;
  readonly dev?: boolean;
  readonly devOptional?: boolean;
}

interface Packed {
  readonly filename: string;
  readonly files: readonly { readonly path: string }[];
}

const redis = useRedis();
const folder = useTemporaryFolder();

/** Packs the built project into `folder`. */
function pack(): Packed {
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const printed = execFileSync('npm', args, { cwd: ROOT, encoding: 'utf8' });
  return (JSON.parse(printed) as [Packed])[0];
}

/**
 * Installs the packed project in `folder` with the packages of its lock file. npm takes these from its cache, where they
 * are since the project was installed.
 */
function install({ filename }: Packed): void {
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

const filesBelow = (path: string, end: string) =>
  readdirSync(ROOT + path, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith(end))
    .map((file) => `${path}/${file}`);

/** Starts the service with its command, calls back with its address, and stops it. */
async function withService(use: (url: string) => Promise<void>): Promise<void> {
  const settings = { ...TEST_SETTINGS, GRPC_PORT: '0', REDIS_URL: redis.url };
  const child = spawn('npx', ['--no', 'sluice'], {
    cwd: folder,
    env: { ...process.env, ...settings, NODE_OPTIONS: '' },
    // A group of its own, so that the children of npx end with it.
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const closed = once(child, 'close');
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      const { msg, port } = JSON.parse(line) as { msg: string; port: number };
      if (msg !== 'serving') continue;
      await use(`http://127.0.0.1:${String(port)}`);
      return;
    }
    throw new Error('the service ended before it served');
  } finally {
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid!, 'SIGTERM');
    await closed;
  }
}

describe('the npm package', () => {
  let packed: Packed;
  beforeAll(() => {
    packed = pack();
    install(packed);
  });

  test('has the built program, its scripts, messages and page, and nothing else', () => {
    expect(packed.files.map(({ path }) => path).sort()).toEqual(
      [
        ...filesBelow('dist', '.js'),
        ...filesBelow('lua', '.lua'),
        ...filesBelow('proto', '.proto'),
        ...filesBelow('ui', ''),
        'LICENSE',
        'README.md',
        'package.json',
      ].sort(),
    );
  });

  test('starts with one command in an empty folder, and finds its scripts, messages and pages', async () => {
    const key = uniqueKey();
    await withService(async (url) => {
      expect((await fetch(`${url}/rate/${key}`, { method: 'POST' })).status).toBe(200);
      expect(await redis.client.exists(`sluice:{${key}}`)).toBe(1);
      for (const path of ['/ui', '/openapi.json', '/docs', '/docs/swagger-ui-bundle.js']) {
        expect([path, (await fetch(url + path)).status]).toEqual([path, 200]);
      }
    });
  });
});
