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

const path = '../../../bench/lib/options.mjs';
const { readOptions, publicCommand } = (await import(path)) as OptionsModule;
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
