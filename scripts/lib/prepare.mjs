import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { installWithNpm } from './npm.mjs';
import { endIfFailed, ROOT, run } from './run.mjs';

const COMPILER = 'scripts/compiler';
/** What is compiled: the settings, the folder with the sources, and the folder of the results. */
const SERVICE = { settings: 'tsconfig.json', sources: 'src', built: 'dist' };
const CLIENT = { settings: 'client.json', sources: 'clients/node/src', built: 'clients/node/dist' };
/** A file among the results, which says what they were compiled from. */
const BUILT_STAMP = '.sluice-built';

/** Installs the packages in the lock file, unless they are installed. */
export function installDependencies() {
  installIn('.');
}

/** Installs only the packages that the service needs to run, and compiles all, unless that is done. */
export async function prepareToRun() {
  const isToRun = ({ dev, devOptional }) => !dev && !devOptional;
  if (isInstalled('.', isToRun)) {
    build();
    return;
  }
  // Beside npm, which mostly waits for the network.
  const builder = spawn(process.execPath, [join(ROOT, 'scripts/build.mjs')], {
    stdio: npmOutput(),
  });
  process.on('exit', () => builder.kill());
  install('.', '--omit=dev');
  const [status] = await once(builder, 'exit');
  endIfFailed('node', { status });
}

/** Installs all packages in the lock file of a folder, unless they are installed. */
export function installIn(folder) {
  if (!isInstalled(folder, () => true)) install(folder, '--include=dev');
}

function isInstalled(folder, isWanted) {
  const there = lockedPackages(join(folder, 'node_modules', '.package-lock.json'));
  const wanted = Object.entries(lockedPackages(join(folder, 'package-lock.json')));
  // npm decides whether an optional package is for this platform.
  return wanted
    .filter(([path, entry]) => path !== '' && !entry.optional && isWanted(entry))
    .every(([path, { integrity }]) => there[path]?.integrity === integrity);
}

function install(folder, option) {
  const words = ['ci', option, '--no-audit', '--no-fund'];
  endIfFailed('npm', installWithNpm(words, { cwd: join(ROOT, folder), stdio: npmOutput() }));
}

/** The packages in a lock file, by path. npm writes one into `node_modules` when everything is installed. */
function lockedPackages(file) {
  const path = join(ROOT, file);
  return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')).packages : {};
}

/** Compiles the service to `dist`, and the client to its package in `clients/node`, unless they are up to date. */
export function build() {
  compile(SERVICE);
  buildClient();
}

/** Compiles the client alone. */
export function buildClient() {
  compile(CLIENT);
}

function compile({ settings, sources, built }) {
  const project = join(COMPILER, settings);
  const files = [join(COMPILER, 'package-lock.json'), join(COMPILER, 'tsconfig.json'), project];
  onChange(join(built, BUILT_STAMP), [...files, 'tsconfig.json', ...filesBelow(sources)], () => {
    installIn(COMPILER);
    rmSync(join(ROOT, built), { recursive: true, force: true });
    const compiler = join(COMPILER, 'node_modules/typescript/bin/tsc');
    run(process.execPath, [compiler, '-p', project], { stdio: npmOutput() });
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
