import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';

import { TEST_SETTINGS } from '../support/replica-process.js';
import { useTemporaryFolder } from '../support/temporary-folder.js';
import { uniqueKey } from '../support/unique-key.js';
import { useRedis } from '../support/use-redis.js';
import { ROOT } from './repository-files.js';
import { servingPort } from './serving-port.js';

const redis = useRedis();
const folder = useTemporaryFolder();

/** Packs the built project, unpacks it in `folder`, and returns the paths of its files. */
function pack(): string[] {
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const printed = execFileSync('npm', args, { cwd: ROOT, encoding: 'utf8' });
  const [{ filename, files }] = JSON.parse(printed) as [
    { filename: string; files: { path: string }[] },
  ];
  execFileSync('tar', ['-xzf', join(folder, filename), '-C', folder]);
  return files.map(({ path }) => path);
}

const filesBelow = (path: string, end: string) =>
  readdirSync(ROOT + path, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith(end))
    .map((file) => `${path}/${file}`);

describe('the npm package', () => {
  let files: readonly string[];
  beforeAll(() => {
    files = pack();
  });

  test('has the built program, its scripts, messages and page, and nothing else', () => {
    expect([...files].sort()).toEqual(
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

  test('serves, and finds its scripts, its messages and its page', async () => {
    symlinkSync(`${ROOT}node_modules`, join(folder, 'node_modules'));
    const program = join(folder, 'package', 'dist', 'main.js');
    const child = spawn(process.execPath, [program], {
      cwd: folder,
      env: { PATH: process.env.PATH, ...TEST_SETTINGS, GRPC_PORT: '0', REDIS_URL: redis.url },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      const port = await servingPort(child);
      const key = uniqueKey();
      const url = `http://127.0.0.1:${String(port)}`;
      expect((await fetch(`${url}/rate/${key}`, { method: 'POST' })).status).toBe(200);
      expect((await fetch(`${url}/ui`)).status).toBe(200);
      expect(await redis.client.exists(`sluice:{${key}}`)).toBe(1);
    } finally {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    }
  });
});
