import { readPage } from '../../support/docs/pages.js';
import { tableRows } from '../../support/docs/tables.js';

/** The program in BENCHMARKS.md of each column of the README. Not measured: undefined. */
const PROGRAMS = {
  Sluice: 'sluice',
  GoCC: 'gocc',
  'Envoy ratelimit': 'envoy-ratelimit',
  Limitador: 'limitador-redis',
  Gubernator: undefined,
  'rate-limiter-flexible': 'rate-limiter-flexible',
  Bottleneck: undefined,
};
/** What is measured of a library includes its server. */
const SERVERS: Readonly<Record<string, string>> = { 'rate-limiter-flexible': ' behind Express' };
const COLUMNS = ['', ...Object.keys(PROGRAMS)];

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

  expect(row?.slice(1)).toEqual(
    Object.values(PROGRAMS).map((program) =>
      program ? measured(section, program) + (SERVERS[program] ?? '') : '',
    ),
  );
});

test("the README's row of gRPC has the figures of the benchmarks", () => {
  const [, text = ''] = readPage('BENCHMARKS.md').split("### Envoy's protocol: one key,");
  const cpuOf = (program?: string): string => {
    const row = new RegExp(`^\\| ${program} +\\| [^|]+\\| ([\\d.]+) `, 'm').exec(text);
    return row ? `${Math.round(Number(row[1]))} µs` : '';
  };
  const row = tableRows('README.md', COLUMNS).find(
    ([first]) => first === 'CPU of a call over gRPC',
  );

  expect(row?.slice(1)).toEqual(Object.values(PROGRAMS).map(cpuOf));
});

test("each row of the README's table has its sources, and each program is named there", () => {
  const rows = tableRows('README.md', COLUMNS).map(([first = '']) => first);
  const compared = rows.filter((row) => !/^decisions\/s|^CPU of/.test(row));
  const [, ...sections] = readPage('docs/comparison.md').split(/^## /m);
  const titles = sections.map((text) => text.slice(0, text.indexOf('\n')).toLowerCase());
  expect(titles).toEqual(compared.map((row) => row.replace(/:.*| of a key/, '')));
  for (const text of sections) {
    const named = Object.keys(PROGRAMS).filter((program) => text.includes(`**${program}**`));
    expect(named).toEqual(Object.keys(PROGRAMS));
  }
});
