import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { ROOT, run } from './run.mjs';

const INSTALLED_STAMP = '.sluice-installed';
const BUILT_STAMP = 'dist/.sluice-built';

/** Installs the packages in the lock file, unless that has been done since its last change. */
export function installDependencies() {
  installIn('.');
}

/** The same for a package in a folder of its own, with its own lock file. */
export function installIn(folder) {
  onChange(
    join(folder, 'node_modules', INSTALLED_STAMP),
    [join(folder, 'package-lock.json')],
    () => {
      run('npm', ['ci', '--include=dev', '--no-audit', '--no-fund'], {
        cwd: join(ROOT, folder),
        stdio: npmOutput(),
      });
    },
  );
}

/** Compiles `src` to `dist`, unless that has been done since its last change. */
export function build() {
  onChange(BUILT_STAMP, ['package-lock.json', 'tsconfig.json', ...filesBelow('src')], () => {
    rmSync(join(ROOT, 'dist'), { recursive: true, force: true });
    run('npm', ['run', '--silent', 'build'], { stdio: npmOutput() });
  });
}

/** Standard output belongs to the service's log. */
function npmOutput() {
  return ['ignore', process.stderr, process.stderr];
}

function filesBelow(folder) {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length))
    .sort();
}

function onChange(stamp, files, work) {
  const hash = createHash('sha256');
  for (const file of files) hash.update(file).update(readFileSync(join(ROOT, file)));
  const digest = hash.digest('hex');
  const path = join(ROOT, stamp);
  if (existsSync(path) && readFileSync(path, 'utf8') === digest) return;
  work();
  writeFileSync(path, digest);
}
