import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { arch, platform } from 'node:os';
import { join } from 'node:path';

import { provided } from '../../support/provided.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { KUBERNETES_VERSION } from '../rendered-objects.js';
import { readManifest, ROOT } from '../repository-files.js';

const MAKING_TIMEOUT_MILLIS = 600_000;

const folder = useTemporaryFolder();
const run = (program: string, ...args: string[]): string =>
  execFileSync(program, args, { cwd: folder, encoding: 'utf8' });

const go = provided('SLUICE_TEST_GO');
const python = provided('SLUICE_TEST_CLIENT_PYTHON');
const helm = provided('SLUICE_TEST_HELM');
const isComplete = [go, python, helm].every((program) => program !== '');

// `npm run test:deploy` says what is missing. client-package.test.ts installs the client for Node.
(isComplete ? describe : describe.skip)('the files of a release', () => {
  const { version } = readManifest();

  beforeAll(() => {
    const making = ['scripts/release-files.mjs', '--into', folder];
    const options = { cwd: ROOT, stdio: 'ignore' } as const;
    execFileSync(process.execPath, making, options);
  }, MAKING_TIMEOUT_MILLIS);

  test('are the clients, the command line of each platform and the chart, with their checksums', () => {
    const platforms = ['darwin_amd64', 'darwin_arm64', 'linux_amd64', 'linux_arm64'];
    expect(readdirSync(folder).sort()).toEqual(
      [
        'SHA256SUMS',
        `sluice-${version}.tgz`,
        `sluice-client-${version}.tgz`,
        ...platforms.map((name) => `sluice-client_${version}_${name}`),
        `sluice-client_${version}_windows_amd64.exe`,
        `sluice_client-${version}-py3-none-any.whl`,
      ].sort(),
    );
    const checked = run('sha256sum', '--check', '--strict', 'SHA256SUMS').trimEnd().split('\n');
    expect(checked).toHaveLength(readdirSync(folder).length - 1);
  });

  test('have a command line that runs on this platform, and is of the version', () => {
    const names: Readonly<Record<string, string>> = { x64: 'amd64' };
    const file = `sluice-client_${version}_${platform()}_${names[arch()] ?? arch()}`;

    expect(run(join(folder, file), '--version')).toBe(`${version}\n`);
  });

  test('have a client for Python that can be installed', () => {
    const pip = [
      '-m',
      'pip',
      'install',
      '--no-deps',
      '--no-index',
      '--quiet',
      '--target',
      'python',
    ];
    run(python, ...pip, `sluice_client-${version}-py3-none-any.whl`);

    const script = 'import sluice_client; print(sluice_client.__file__)';
    expect(run('env', 'PYTHONPATH=python', python, '-c', script)).toMatch(
      /python\/sluice_client\/__init__\.py\n$/,
    );
  });

  test('have a chart that can be rendered', () => {
    const chart = `sluice-${version}.tgz`;
    const rendered = run(helm, 'template', 'a', chart, '--kube-version', KUBERNETES_VERSION);
    expect(rendered).toContain(`image: "sluice:${version}"`);
  });
});
