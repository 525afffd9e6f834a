import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { ROOT, run } from './run.mjs';

const COMPILER = 'scripts/compiler';
const DECLARATIONS = join(COMPILER, 'client-declarations.json');
const BUILT_STAMP = 'dist/.sluice-built';

/** Installs the packages in the lock file, unless they are installed. */
export function installDependencies() {
  installIn('.');
}

/** Installs only the packages that the service needs to run, unless they are installed. */
export function installToRun() {
  install('.', '--omit=dev', ({ dev, devOptional }) => !dev && !devOptional);
}

/** Installs all packages in the lock file of a folder, unless they are installed. */
export function installIn(folder) {
  install(folder, '--include=dev', () => true);
}

function install(folder, option, isWanted) {
  const there = lockedPackages(join(folder, 'node_modules', '.package-lock.json'));
  const wanted = Object.entries(lockedPackages(join(folder, 'package-lock.json')));
  // npm decides whether an optional package is for this platform.
  const isThere = wanted
    .filter(([path, entry]) => path !== '' && !entry.optional && isWanted(entry))
    .every(([path, { integrity }]) => there[path]?.integrity === integrity);
  if (isThere) return;
  run('npm', ['ci', option, '--no-audit', '--no-fund'], {
    cwd: join(ROOT, folder),
    stdio: npmOutput(),
  });
}

/** The packages in a lock file, by path. npm writes one into `node_modules` when everything is installed. */
function lockedPackages(file) {
  const path = join(ROOT, file);
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).packages : {};
}

/** Compiles `src` to `dist`, with the types of the client, unless `dist` is up to date. */
export function build() {
  const settings = ['package-lock.json', 'tsconfig.json'].map((file) => join(COMPILER, file));
  onChange(BUILT_STAMP, [...settings, DECLARATIONS, 'tsconfig.json', ...filesBelow('src')], () => {
    installIn(COMPILER);
    rmSync(join(ROOT, 'dist'), { recursive: true, force: true });
    const compiler = join(COMPILER, 'node_modules/typescript/bin/tsc');
    for (const project of [COMPILER, DECLARATIONS]) {
      run(process.execPath, [compiler, '-p', project], { stdio: npmOutput() });
    }
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
