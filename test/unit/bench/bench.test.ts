import { readFileSync } from 'node:fs';

import { readPage, ROOT } from '../../support/docs/pages.js';

interface Options {
  readonly help: boolean;
  readonly publish: boolean;
  readonly rounds: number;
  readonly seconds: number;
  readonly windows: number;
  readonly only: readonly string[];
  readonly with: Readonly<Record<string, string>>;
  readonly before: string | undefined;
}

interface OptionsModule {
  readonly readOptions: (
    words: readonly string[],
    known: { readonly scenarios: readonly string[]; readonly peers: readonly string[] },
  ) => Options;
  readonly publicCommand: (words: readonly string[]) => string;
}

const KNOWN = { scenarios: ['throughput', 'wake'], peers: ['gocc', 'limitador'] };

const optionsPath = '../../../bench/lib/options.mjs';
const { readOptions, publicCommand } = (await import(optionsPath)) as OptionsModule;
const read = (...words: string[]): Options => readOptions(words, KNOWN);

test('without options, everything is measured, without programs that have to be installed', () => {
  expect(read()).toEqual({
    help: false,
    publish: false,
    rounds: 5,
    seconds: 3,
    windows: 50,
    only: ['throughput', 'wake'],
    with: {},
    base: expect.stringMatching(/^[0-9a-f]{8}$/) as string,
    ofCases: '',
    most: Infinity,
    before: undefined,
  });
});

test('each peer has the path of its program', () => {
  const options = read(
    '--with',
    `gocc=${process.execPath}`,
    `--with=limitador=${process.execPath}`,
  );

  expect(options.with).toEqual({ gocc: process.execPath, limitador: process.execPath });
});

test.each([
  [['--with', 'gocc'], '--with takes NAME=PATH, not gocc'],
  [['--with', `doorman=${process.execPath}`], 'no peer is called doorman: gocc, limitador'],
  [['--with', 'gocc=./missing'], 'there is no program ./missing'],
  [['--before', './test'], 'there is no dist/main.js in ./test'],
  [['--most', 'none'], '--most takes a number above 0'],
  [['--only', 'wake,sleep'], 'no measurement is called sleep'],
  [['--rounds', '0'], '--rounds takes a number above 0'],
  [['--seconds', 'two'], '--seconds takes a number above 0'],
  [['--publish', '--only', 'wake'], '--publish takes a whole run, without --only'],
])('%j is rejected with the reason', (words, reason) => {
  expect(() => read(...words)).toThrow(reason);
});

test('the published command has no path of the machine', () => {
  const words = [
    '--publish',
    '--with',
    'gocc=/opt/gocc',
    '--with=limitador=bin/l',
    '--before',
    '.',
  ];

  expect(publicCommand(words)).toBe(
    'npm run bench -- --publish --with gocc=PATH --with=limitador=PATH --before PATH',
  );
  expect(publicCommand(['--before=../old', '--rounds', '2'])).toBe(
    'npm run bench -- --before=PATH --rounds 2',
  );
  expect(publicCommand([])).toBe('npm run bench');
});

interface Asking {
  readonly path: string;
  readonly body?: string;
  readonly checks?: number;
  readonly approved: { readonly text: string; readonly length?: number };
}

interface AskingModule {
  readonly SINGLE_CHECK: Asking;
  readonly checksAtOnce: (checks: number) => Asking;
  readonly isRight: (answer: string, asking: Asking, mayRefuse: boolean) => boolean;
}

const askingPath = '../../../bench/lib/asking.mjs';
const { SINGLE_CHECK, checksAtOnce, isRight } = (await import(askingPath)) as AskingModule;
const APPROVAL = { request_id: '33ae0015-5d23-4b92-a7d9-c2632dd50c59' };

test('an answer is right if it equals the expected answer', () => {
  const [approved, denied] = [
    JSON.stringify(APPROVAL),
    '{"error":"rate limit exceeded","key":"k"}',
  ];

  expect(isRight(approved, SINGLE_CHECK, false)).toBe(true);
  expect(isRight(`${approved} `, SINGLE_CHECK, false)).toBe(false);
  expect(isRight(denied, SINGLE_CHECK, false)).toBe(false);
  expect(isRight(denied, SINGLE_CHECK, true)).toBe(true);
});

test('an answer to a bulk request is right if all checks are approved', () => {
  const two = checksAtOnce(2);
  const approval = { status: 200, ...APPROVAL };
  const denial = { status: 429, error: 'rate limit exceeded', retryAfter: 1 };

  expect(isRight(JSON.stringify([approval, approval]), two, false)).toBe(true);
  expect(isRight(JSON.stringify([approval]), two, false)).toBe(false);
  expect(isRight(JSON.stringify([approval, denial]), two, false)).toBe(false);
});

interface Bucket {
  readonly served: number;
  readonly level: number;
  readonly at: number;
}

interface BucketTimes {
  readonly dueAt: (buckets: readonly Bucket[], perSecond: number, number: number) => number;
}

const timesPath = '../../../bench/lib/bucket-times.mjs';
const { dueAt } = (await import(timesPath)) as BucketTimes;

const FULL = { served: 3, level: 1, at: 5000 };

test('the next waiter of a full bucket is due a pace later, the one after it two', () => {
  expect(dueAt([FULL], 100, 4)).toBe(5010);
  expect(dueAt([FULL], 100, 5)).toBe(5020);
});

test('what a bucket has drained beyond the last approval brings the next one forward', () => {
  expect(dueAt([{ ...FULL, level: 0.25 }], 100, 4)).toBe(5002.5);
});

test('a waiter is due by the last look at the bucket before it was served', () => {
  const later = { served: 8, level: 1, at: 5100 };

  expect(dueAt([FULL, later], 100, 8)).toBe(5050);
  expect(dueAt([FULL, later], 100, 9)).toBe(5110);
});

const RESULTS = `${ROOT}bench/results/published`;

const [answersPath, chartPath] = ['../../../bench/lib/answers.mjs', '../../../bench/lib/chart.mjs'];
const { answers } = (await import(answersPath)) as { answers: (results: unknown) => string };
const { chart } = (await import(chartPath)) as { chart: (results: unknown) => string };
const results: unknown = JSON.parse(readFileSync(`${RESULTS}.json`, 'utf8'));

test('BENCHMARKS.md begins with the answers of the recorded results', () => {
  const [, shown] = /<!-- answers -->\n([^]*?)<!-- end of answers -->/.exec(
    readPage('BENCHMARKS.md'),
  )!;
  expect(shown!.trim()).toBe(answers(results).trim());
});

test('the chart of BENCHMARKS.md is the one of the recorded results', () => {
  expect(readFileSync(`${RESULTS}.svg`, 'utf8')).toBe(chart(results));
});
