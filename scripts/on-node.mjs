// `node scripts/on-node.mjs shipped npm test`: runs a command with another Node than this one, first on PATH. `shipped` is
// the Node of the image, and `oldest` the oldest that is supported. A missing one is installed from npm, into a folder of
// node_modules.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';

import { installWithNpm } from './lib/npm.mjs';
import { installDependencies } from './lib/prepare.mjs';
import { endIfFailed, ROOT, stop } from './lib/run.mjs';

/** Where the version stands. */
const VERSIONS = {
  shipped: () => /\bnode:(\d+\.\d+\.\d+)-/.exec(textOf('Dockerfile'))[1],
  oldest: () => `${/^>=(\d+\.\d+)$/.exec(JSON.parse(textOf('package.json')).engines.node)[1]}.0`,
};

const [which, command, ...words] = process.argv.slice(2);
if (!VERSIONS[which] || command === undefined) {
  stop(`Usage: node scripts/on-node.mjs ${Object.keys(VERSIONS).join('|')} COMMAND ...`);
}
// Otherwise the command would, and remove the Node that runs it.
installDependencies();
const bin = folderOf(VERSIONS[which]());
const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH}` };
endIfFailed(command, spawnSync(command, words, { cwd: ROOT, stdio: 'inherit', env }));

/** The folder of the program `node` of this version. */
function folderOf(version) {
  // The package `node` would choose this one, by a script.
  const name = `node-${process.platform}-${process.arch}`;
  const prefix = join(ROOT, 'node_modules', '.cache', 'sluice', `node-${version}`);
  const folder = join(prefix, 'node_modules', name, 'bin');
  if (!existsSync(join(folder, 'node'))) {
    console.error(`installing Node ${version} from npm ...`);
    const options = [
      '--no-save',
      '--no-package-lock',
      '--no-audit',
      '--no-fund',
      '--ignore-scripts',
    ];
    const install = ['install', '--prefix', prefix, ...options, `${name}@${version}`];
    endIfFailed('npm', installWithNpm(install, { stdio: 'inherit' }));
  }
  return folder;
}

function textOf(file) {
  return readFileSync(join(ROOT, file), 'utf8');
}
