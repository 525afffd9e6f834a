import { execFileSync } from 'node:child_process';

const MODULE = new URL('../../../dist/common/young-objects.js', import.meta.url).href;

/** Creates objects that survive collections, until V8 creates them in the old generation, or for 60 rounds. */
const PROGRAM = `
const isYoung = new Function('object', 'return %InYoungGeneration(object)');
const create = (i) => [i, { i }, i + 0.5];
let kept = [];
let round = 0;
while (round < 60 && isYoung(create(round))) {
  round += 1;
  for (let i = 0; i < 20_000; i += 1) kept.push(create(i));
  if (kept.length > 300_000) kept = [];
}
console.log(round < 60 ? 'old' : 'young');
`;

function generationOfNewObjects(start: string): string {
  const options = ['--allow-natives-syntax', '--input-type=module', '-e', start + PROGRAM];
  return execFileSync(process.execPath, options, { encoding: 'utf8' }).trim();
}

test('objects like those that survived are created in the young generation', () => {
  const start = `import { createObjectsYoung } from '${MODULE}'; createObjectsYoung();`;
  expect(generationOfNewObjects(start)).toBe('young');
});
