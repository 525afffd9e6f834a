// `npm run test:mutations`: changes one line of the limiters at a time, in a copy of this folder, and checks whether
// a test fails. It prints the changes that no test has noticed, and ends with code 1 if there are too many.
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { findRedisServer } from './lib/find-redis.mjs';
import { build, installDependencies } from './lib/prepare.mjs';
import { ROOT, stop } from './lib/run.mjs';
import { chooseMutants } from './mutations/mutants.mjs';
import { judge, judgeUnchanged } from './mutations/judge.mjs';

const HELP = `npm run test:mutations -- [options]

  --seed N     to have the same changes again (1)
  --count N    how many changes (140)
  --from N     without those before the Nth, to go on with a run that was stopped
  --only TEXT  of files whose path contains it
`;
/** The greatest fraction of changes that may stay unnoticed. */
const MOST_UNNOTICED = 2 / 140;
/** Everything else is copied, also pages: tests read them. Tests of processes run the build from before all changes. */
const NOT_COPIED = ['.git', 'node_modules'];

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    count: { type: 'string', default: '140' },
    from: { type: 'string', default: '1' },
    only: { type: 'string', default: '' },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(HELP);
  process.exit(0);
}
installDependencies();
build();
const redis = findRedisServer();
const mutants = chooseMutants(Number(values.seed), Number(values.count), values.only);
const folder = mkdtempSync(join(tmpdir(), 'sluice-mutations-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));
for (const name of readdirSync(ROOT).filter((name) => !NOT_COPIED.includes(name))) {
  cpSync(join(ROOT, name), join(folder, name), { recursive: true });
}
symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));

const failing = await judgeUnchanged(folder, redis);
if (failing !== undefined) stop(`tests fail without any change: ${failing}`);
const unnoticed = [];
const judged = mutants.slice(Number(values.from) - 1);
for (const mutant of judged) {
  const path = join(folder, mutant.file);
  const original = readFileSync(path, 'utf8');
  writeFileSync(path, mutant.apply(original));
  const noticedBy = await judge(folder, mutant.file, redis);
  writeFileSync(path, original);
  console.log(
    `${mutants.indexOf(mutant) + 1}/${mutants.length} ${mutant.text}\n  ${noticedBy ?? 'NOT NOTICED'}`,
  );
  if (noticedBy === undefined) unnoticed.push(mutant);
}
console.log(`${judged.length - unnoticed.length} of ${judged.length} changes were noticed`);
for (const { text } of unnoticed) console.log(`not noticed: ${text}`);
process.exit(unnoticed.length > MOST_UNNOTICED * judged.length ? 1 : 0);
