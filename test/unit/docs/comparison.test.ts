import { readPage } from '../../support/docs/pages.js';
import { tableRows } from '../../support/docs/tables.js';

/** The programs of BENCHMARKS.md, in the order of the README's columns. */
const PROGRAMS = ['sluice', 'gocc', 'limitador-redis', 'envoy-ratelimit', 'rate-limiter-flexible'];
const COLUMNS = [
  ...['', 'Sluice', 'GoCC', 'Limitador', 'Envoy ratelimit'],
  'rate-limiter-flexible',
];

/** The decisions per second of a program in a section of BENCHMARKS.md, in whole thousands. */
function measured(section: string, program: string): string {
  const [, text = ''] = readPage('BENCHMARKS.md').split(`### Throughput: ${section}\n`);
  const [, figure = ''] = new RegExp(`^\\| ${program} +\\| ([\\d,]+) `, 'm').exec(text) ?? [];
  return `${Math.round(Number(figure.replace(',', '')) / 1000)},000`;
}

test.each([
  ['decisions/s, one key', 'one key, all approved'],
  ['decisions/s, 5,000 keys', '5,000 keys, all approved'],
])("the README's row of %s has the figures of the benchmarks", (label, section) => {
  const row = tableRows('README.md', COLUMNS).find(([first]) => first === label);

  expect(row?.slice(1).map((cell) => cell.replace(' on Redis', ''))).toEqual(
    PROGRAMS.map((program) => measured(section, program)),
  );
});
