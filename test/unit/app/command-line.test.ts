import { CommandLineError, parseCommandLine, USAGE } from '../../../src/app/command-line.js';

test.each([
  [[], { name: 'serve' }],
  [['--help'], { name: 'help' }],
  [['-h'], { name: 'help' }],
  [['--check-config', 'a', '-h'], { name: 'help' }],
  [['--version'], { name: 'version' }],
  [['--check-config', 'a'], { name: 'rules', file: 'a', key: undefined }],
  [['--explain', 'b'], { name: 'rules', file: undefined, key: 'b' }],
  [['import', 'envoy-ratelimit', 'a', 'b'], { name: 'import', files: ['a', 'b'] }],
  [['import', '--help'], { name: 'help' }],
  [['--check-config=a', '--explain=--b'], { name: 'rules', file: 'a', key: '--b' }],
])('%j is a command', (args, command) => {
  expect(parseCommandLine(args)).toEqual(command);
});

test.each([
  [['--chek-config', 'a'], 'unknown option --chek-config; did you mean --check-config?'],
  [['--port', '1'], 'unknown option --port'],
  [['-v'], 'unknown option -v'],
  [['--constructor'], 'unknown option --constructor'],
  [['serve'], 'unexpected argument "serve"'],
  [['--help', '--', '--version'], 'unexpected argument "--version"'],
  [['import'], 'import takes envoy-ratelimit, not nothing'],
  [['import', 'gocc', 'a'], 'import takes envoy-ratelimit, not "gocc"'],
  [['import', 'envoy-ratelimit'], 'import envoy-ratelimit needs a file'],
  [['import', 'envoy-ratelimit', 'a', '--explain', 'b'], 'import takes no option --explain'],
  [['--explain', 'b', 'import'], 'unexpected argument "import"'],
  [['--explain'], '--explain needs a value'],
  [['--check-config', '--explain', 'b'], '--check-config needs a value'],
  [['--version=1'], '--version takes no value'],
])('%j is rejected, with the usage', (args, problem) => {
  expect(() => parseCommandLine(args)).toThrow(new CommandLineError(problem));
  expect(new CommandLineError(problem).message).toBe(`${problem}\n\n${USAGE}`);
});
