import { mkdtempSync, rmSync, writeFileSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

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
    only: KNOWN.scenarios,
    with: {},
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

interface Launch {
  readonly arguments: readonly (string | number)[];
  readonly environment: Readonly<Record<string, string | number>>;
  readonly files?: Readonly<Record<string, string>>;
  readonly startsOnOneCore?: boolean;
}

interface Program {
  readonly name: string;
  readonly path: string;
  readonly asking: Asking;
  readonly usesRedis: boolean;
  readonly launch: (parts: object) => Launch;
}

interface PeersModule {
  readonly nativePrograms: (paths: Readonly<Record<string, string>>) => readonly Program[];
  readonly describePeer: (peer: string, path: string) => string;
}

interface RedisRateModule {
  readonly scriptIn: (path: string) => string;
}

interface AskingModule {
  readonly SINGLE_CHECK: Asking;
  readonly checksAtOnce: (checks: number) => Asking;
  readonly callOf: (asking: Asking, nextKey: () => string) => { path: string; body: string };
  readonly isRight: (answer: string, asking: Asking, mayRefuse: boolean) => boolean;
}

const [peersPath, askingPath, redisRatePath] = [
  '../../../bench/lib/native-peers.mjs',
  '../../../bench/lib/asking.mjs',
  '../../../bench/peers/redis-rate.mjs',
];
const { nativePrograms, describePeer } = (await import(peersPath)) as PeersModule;
const { scriptIn } = (await import(redisRatePath)) as RedisRateModule;
const { SINGLE_CHECK, checksAtOnce, callOf, isRight } = (await import(askingPath)) as AskingModule;

const PROGRAMS = nativePrograms({ gocc: 'g', limitador: 'l', 'envoy-ratelimit': 'e' });
const REDIS = { port: 7001, url: 'redis://127.0.0.1:7001' };
const PARTS = { port: 8001, sparePorts: [8002, 8003], folder: '/f', redis: REDIS, limit: 1234 };
const APPROVAL = { request_id: '33ae0015-5d23-4b92-a7d9-c2632dd50c59' };

const settingsOf = (launch: Launch): string => JSON.stringify(launch);

test('only the peers with a program are started, Limitador in memory and on Redis', () => {
  expect(nativePrograms({})).toEqual([]);
  expect(nativePrograms({ 'redis-rate': 'r' })).toEqual([]);
  expect(PROGRAMS.map(({ name, path, usesRedis }) => [name, path, usesRedis])).toEqual([
    ['gocc', 'g', false],
    ['limitador', 'l', false],
    ['limitador-redis', 'l', true],
    ['envoy-ratelimit', 'e', true],
  ]);
});

test.each(PROGRAMS)('$name has the port, the limit and one core', ({ launch }) => {
  const settings = launch(PARTS);

  expect(settingsOf(settings)).toContain('8001');
  expect(settingsOf(settings)).toContain('1234');
  expect(settings.startsOnOneCore ?? settings.environment.GOMAXPROCS === '1').toBe(true);
});

test.each(PROGRAMS)(
  '$name gets the address of Redis only if it uses it',
  ({ usesRedis, launch }) => {
    expect(settingsOf(launch(PARTS)).includes('127.0.0.1:7001')).toBe(usesRedis);
  },
);

test.each(PROGRAMS)('$name is asked for the key once', ({ asking }) => {
  const { path, body } = callOf(asking, () => 'hot-7');

  expect(`${path} ${body}`.split('hot-7')).toHaveLength(2);
  if (body !== '') expect(JSON.parse(body)).toBeInstanceOf(Object);
});

test('bulk requests name a key for each check', () => {
  let last = 0;
  const nextKey = (): string => {
    last += 1;
    return `many-${last}`;
  };

  const { path, body } = callOf(checksAtOnce(3), nextKey);

  expect(path).toBe('/rate');
  expect(JSON.parse(body)).toEqual([{ key: 'many-1' }, { key: 'many-2' }, { key: 'many-3' }]);
});

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

test("redis_rate's script for one check is read from its file", () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-redis-rate-'));
  try {
    const file = join(folder, 'lua.go');
    const scripts = ['allowN', 'allowAtMost'].map(
      (name) => `var ${name} = redis.NewScript(\`\nreturn "${name}"\n\`)\n`,
    );
    writeFileSync(file, scripts.reverse().join(''));
    expect(scriptIn(file)).toBe('\nreturn "allowN"\n');

    writeFileSync(file, 'package redis_rate');
    expect(() => scriptIn(file)).toThrow(`${file} has no script allowN`);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('the version of a Go module is the one of its folder', () => {
  const folder = join(tmpdir(), 'redis_rate', 'v10@v10.0.1');

  expect(describePeer('redis-rate', join(folder, 'lua.go'))).toBe('redis-rate v10.0.1');
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
