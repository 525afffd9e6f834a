// `npm run lint` runs this after prettier and eslint: textlint with our word list, scripts/prose/words.yml, on pages,
// comments, test titles and messages. Arguments are files and folders instead of FOLDERS. `--count` prints only the counts.
import { readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';

import { lintFile } from './prose/lint-file.mjs';
import { ROOT } from './lib/run.mjs';

/** The checked folders. */
const FOLDERS = [
  '.github',
  'bench',
  'clients',
  'deploy',
  'docs',
  'k8s',
  'lua',
  'proto',
  'scripts',
  'src',
  'test',
  'ui',
];
const IGNORED = ['node_modules', 'dist', 'coverage', '.git'];
/** These files contain the words that the linter finds, as examples. */
const EXAMPLES = ['words.yml', 'prose.test.ts'];

const args = process.argv.slice(2);
const given = args.filter((word) => word !== '--count');
const paths = given.length > 0 ? given : [...FOLDERS, ...filesAtTheTop()];

let findings = 0;
for (const path of paths) {
  let ofPath = 0;
  for (const file of filesBelow(path)) {
    for (const { line, column, message } of await lintFile(resolve(ROOT, file))) {
      ofPath += 1;
      if (!args.includes('--count')) console.error(`${file}:${line}:${column} ${message}`);
    }
  }
  if (args.includes('--count')) console.log(`${path}: ${ofPath}`);
  findings += ofPath;
}
process.exit(findings > 0 && !args.includes('--count') ? 1 : 0);

function filesAtTheTop() {
  return readdirSync(ROOT, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name);
}

function filesBelow(path) {
  const whole = resolve(ROOT, path);
  if (!statSync(whole).isDirectory()) return [path];
  return readdirSync(whole, { withFileTypes: true })
    .filter(({ name }) => ![...IGNORED, ...EXAMPLES].includes(name))
    .flatMap(({ name }) => filesBelow(join(path, name)));
}
