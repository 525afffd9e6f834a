import { CommandLineError, parseCommandLine, USAGE } from '../../../src/app/command-line.js';
import { serveUntilSeen, stopInOrder } from '../../../src/app/stop-in-order.js';
import type { Ports } from '../../../src/http/server/ports.js';
import type { Limiter } from '../../../src/limiter/limiter.js';

test.each([
  [[], { name: 'serve' }],
  [['--help'], { name: 'help' }],
  [['-h'], { name: 'help' }],
  [['--check-config', 'a', '-h'], { name: 'help' }],
  [['--version'], { name: 'version' }],
  [['--check-config', 'a'], { name: 'rules', file: 'a', key: undefined }],
  [['--explain', 'b'], { name: 'rules', file: undefined, key: 'b' }],
  [['--explain', 'b', '--group', 'g'], { name: 'rules', file: undefined, key: 'b', group: 'g' }],
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
  [['--group', 'g'], '--group needs --explain'],
  [['--check-config', '--explain', 'b'], '--check-config needs a value'],
  [['--version=1'], '--version takes no value'],
])('%j is rejected, with the usage', (args, problem) => {
  expect(() => parseCommandLine(args)).toThrow(new CommandLineError(problem));
  expect(new CommandLineError(problem).message).toBe(`${problem}\n\n${USAGE}`);
});

/** Ports that note how they are asked to end idle connections. */
function portsThatNote(): { ports: Ports; asked: unknown[][] } {
  const asked: unknown[][] = [];
  const ports = {
    endIdle: (...args: unknown[]) => {
      asked.push(args);
      return Promise.resolve();
    },
  };
  return { ports: ports as unknown as Ports, asked };
}

test('idle connections end in the last fifth of the delay', async () => {
  const { ports, asked } = portsThatNote();
  await serveUntilSeen(ports, 100, undefined);

  expect(asked).toEqual([[20, undefined]]);
});

test('idle connections end at once in a hurry', async () => {
  const { ports, asked } = portsThatNote();
  const hurry = new AbortController();
  const seen = serveUntilSeen(ports, 3_600_000, hurry.signal);
  hurry.abort();
  await seen;

  expect(asked).toEqual([[720_000, hurry.signal]]);
});

test('without a delay idle connections end with the port', async () => {
  const { ports, asked } = portsThatNote();
  await serveUntilSeen(ports, 0, undefined);

  expect(asked).toEqual([]);
});

const STEPS = ['stopAccepting', 'handOver', 'endUnowed', 'close', 'cutConnections'] as const;

test.each(STEPS)('a stop in which %s fails takes all other steps, and fails', async (failing) => {
  const taken: string[] = [];
  const step = (name: (typeof STEPS)[number]) => () => {
    taken.push(name);
    if (name === failing) throw new Error(`${name} is broken`);
    return Promise.resolve();
  };
  const steps = Object.fromEntries(STEPS.map((name) => [name, step(name)]));
  const parts = { ...steps, waiting: () => 1 } as unknown as Ports & Limiter;

  await expect(stopInOrder(parts, parts, 0, undefined)).rejects.toMatchObject({
    errors: [new Error(`${failing} is broken`)],
  });
  expect(taken).toEqual(STEPS);
});
