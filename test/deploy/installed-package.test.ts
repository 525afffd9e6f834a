import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

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

describe('the npm package in an empty folder', () => {
  beforeAll(install);

  test('starts with one command', async () => {
    await withService(async (url) => {
      expect((await fetch(`${url}/rate/a`, { method: 'POST' })).status).toBe(200);
      for (const path of ['/openapi.json', '/docs', '/docs/swagger-ui-bundle.js']) {
        expect([path, (await fetch(url + path)).status]).toEqual([path, 200]);
      }
    });
  });
});
