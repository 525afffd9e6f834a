// `npm run release:files -- [PART...] [--into FOLDER]`: makes the files of a release, or these parts of it, and SHA256SUMS.
// By default it makes all parts but the image, in the folder `release`.
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';

import { BUILD_ARGUMENTS } from './lib/base-images.mjs';
import { findProgram } from './lib/install-package.mjs';
import { buildClient } from './lib/prepare.mjs';
import { ROOT, run, stop } from './lib/run.mjs';

const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const PLATFORMS = ['linux/amd64', 'linux/arm64', 'darwin/amd64', 'darwin/arm64', 'windows/amd64'];
const CHECKSUMS = 'SHA256SUMS';

const PARTS = {
  'node-client': () => {
    buildClient();
    const source = join(ROOT, 'clients/node');
    run('npm', ['pack', source, '--ignore-scripts', '--pack-destination', folder, '--silent']);
  },
  'python-client': () => {
    const pip = ['-m', 'pip', '--disable-pip-version-check', '--quiet'];
    run(program('python3'), [
      ...pip,
      'wheel',
      '--no-deps',
      '--wheel-dir',
      folder,
      'clients/python',
    ]);
  },
  'command-line': () => {
    for (const platform of PLATFORMS) {
      const [GOOS, GOARCH] = platform.split('/');
      const end = GOOS === 'windows' ? '.exe' : '';
      const file = join(folder, `sluice-client_${version}_${GOOS}_${GOARCH}${end}`);
      const build = ['build', '-trimpath', '-ldflags=-s', '-o', file, './cmd/sluice-client'];
      const env = { ...process.env, CGO_ENABLED: '0', GOOS, GOARCH };
      run(program('go'), build, { cwd: join(ROOT, 'clients/go'), env });
    }
  },
  chart: () => {
    const chart = ['package', 'deploy/helm/sluice', '--destination', folder];
    run(process.env.SLUICE_TEST_HELM || program('helm'), chart, {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
  },
  image: () => {
    const name = `sluice:${version}`;
    run('docker', ['build', '--quiet', ...BUILD_ARGUMENTS, '--tag', name, '.']);
    run('docker', ['save', '--output', join(folder, `sluice_${version}_image.tar`), name]);
  },
};
const BY_DEFAULT = Object.keys(PARTS).filter((name) => name !== 'image');

const words = process.argv.slice(2);
const into = words.indexOf('--into');
const [, given = 'release'] = into < 0 ? [] : words.splice(into, 2);
const folder = resolve(ROOT, given);
const unknown = words.find((name) => !(name in PARTS));
if (unknown) stop(`There is no part ${unknown}; the parts are ${Object.keys(PARTS).join(', ')}.`);

rmSync(join(folder, CHECKSUMS), { force: true });
mkdirSync(folder, { recursive: true });
for (const name of words.length > 0 ? words : BY_DEFAULT) PARTS[name]();
const sums = readdirSync(folder).map((file) => {
  const sum = createHash('sha256')
    .update(readFileSync(join(folder, file)))
    .digest('hex');
  return `${sum}  ${file}\n`;
});
writeFileSync(join(folder, CHECKSUMS), sums.join(''));
console.log(`${folder}:\n${sums.join('')}`.trimEnd());

function program(name) {
  return findProgram(name) ?? stop(`${name} is missing.`);
}
