import { execFile, execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { useTemporaryFolder } from '../support/temporary-folder.js';
import { useApps } from '../support/use-apps.js';
import { ROOT } from './repository-files.js';

const MOST_BYTES = 200_000;

const folder = useTemporaryFolder();
const run = promisify(execFile);
const start = useApps();
const installed = (path: string) => join(folder, 'node_modules', path);

/** Makes the client's file of a release, and installs it in `folder`, offline. */
function install(): void {
  const making = ['scripts/release-files.mjs', 'node-client', '--into', folder];
  execFileSync(process.execPath, making, { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] });
  const [file] = readdirSync(folder).filter((name) => name.endsWith('.tgz'));
  writeFileSync(join(folder, 'package.json'), '{}');
  const installing = ['install', '--offline', '--no-audit', '--no-fund', file!];
  execFileSync('npm', installing, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
}

const TYPED = `
import {
  limitedFetch,
  rateLimit,
  SluiceClient,
  SluiceDeniedError,
  SluicePermitLostError,
} from 'sluice-client';

const client = new SluiceClient({ url: 'http://localhost:8080', token: () => 'a', timeoutMillis: 1 });
const decision = await client.check('a', { maxRequests: 1, signal: AbortSignal.timeout(1) });
// @ts-expect-error: only an approval has an id
decision.requestId;
const id: string = decision.approved ? decision.requestId : String(decision.retryAfterSeconds);
const left: number | undefined = (await client.wait('a')).quota?.[0]?.remaining;
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
export const all = [left, released, seven, renewed, cut, answer, new SluiceDeniedError('a', 1).status];
// @ts-expect-error: there is no such option
await client.wait('a', { canWait: true });
`;

describe('the package of the Node client in an empty folder', () => {
  beforeAll(install);

  test('has no dependencies, and is small', () => {
    const packages = readdirSync(join(folder, 'node_modules')).filter(
      (name) => !name.startsWith('.'),
    );
    const manifest = JSON.parse(
      readFileSync(installed('sluice-client/package.json'), 'utf8'),
    ) as Readonly<Record<string, unknown>>;
    const bytes = readdirSync(installed('sluice-client'), { recursive: true, encoding: 'utf8' })
      .map((path) => statSync(installed(join('sluice-client', path))))
      .reduce((sum, file) => sum + (file.isFile() ? file.size : 0), 0);

    expect(packages).toEqual(['sluice-client']);
    expect(Object.keys(manifest).filter((name) => /dependencies/i.test(name))).toEqual([]);
    expect(bytes).toBeLessThan(MOST_BYTES);
  });

  test('runs the example of its README, which checks, waits and releases', async () => {
    const readme = readFileSync(installed('sluice-client/README.md'), 'utf8');
    const [, example = ''] = /^```javascript\n([\s\S]*?)^```$/m.exec(readme) ?? [];
    writeFileSync(join(folder, 'example.mjs'), example);

    const { url } = await start({ WINDOW_MILLIS: '3600000' });
    const { stdout } = await run(process.execPath, ['example.mjs'], {
      cwd: folder,
      env: { PATH: process.env.PATH, SLUICE_URL: url },
    });

    expect(stdout).toBe('approved: true\nafter a wait: true\nwork: done\n');
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
