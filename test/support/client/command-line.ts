import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';

import { CHILD_PATH } from '../child-environment.js';
import { until } from '../until.js';

/** The path of `sluice-client`. Without Go it is empty, which `npm test` says. */
export const CLIENT_PROGRAM = process.env.SLUICE_TEST_GO_COMMAND_LINE ?? '';

/** Describes what the command line does. Without it the tests are skipped. */
export const describeCommandLine = CLIENT_PROGRAM === '' ? describe.skip : describe;

type Environment = Readonly<Record<string, string>>;

/** A command line that runs. */
export interface RunningCommand {
  readonly pid: number;
  /** What it has written so far. On a terminal, everything is in `stdout`. */
  readonly stdout: string;
  readonly stderr: string;
  /** Resolves when it has ended. @returns its exit code, or the signal that ended it */
  readonly ended: Promise<number | NodeJS.Signals>;
  /** Resolves once its standard output has what `pattern` finds. @throws Error if it ends without that */
  written(pattern: RegExp): Promise<RegExpExecArray>;
  /** The same for its standard error, whose messages have the key, and so much that a pattern may find. */
  reported(pattern: RegExp): Promise<RegExpExecArray>;
  signal(signal: NodeJS.Signals): void;
  /** Writes to its standard input, or types on its terminal. */
  type(text: string): void;
  /** Closes its standard input. */
  endInput(): void;
  /** Nobody reads its standard error from now on. */
  closeErrors(): void;
}

export interface StartOptions {
  readonly env?: Environment;
  /** Runs it on a terminal of its own. */
  readonly onTerminal?: boolean;
  /** The descriptor of its standard output, instead of a pipe that is read. */
  readonly output?: number;
  /** A script of bash that starts the command line, which is in `"$@"`. */
  readonly script?: string;
}

export type StartCommand = (args: readonly string[], options?: StartOptions) => RunningCommand;

/** Starts command lines, which are killed after each test. */
export function useCommandLine(): StartCommand {
  const running = new Set<ChildProcess>();
  afterEach(() => {
    for (const child of running) {
      // If a test fails, CMD may go on, which has a process group of its own.
      const isRunning = child.exitCode === null && child.signalCode === null;
      if (isRunning) spawnSync('pkill', ['-KILL', '-P', String(child.pid)]);
      child.kill('SIGKILL');
      // A CMD that is left would keep them open, and the tests from ending.
      for (const stream of child.stdio) stream?.destroy();
    }
    running.clear();
  });
  return (args, options = {}) => {
    const words = [CLIENT_PROGRAM, ...args];
    const { script } = options;
    const child = start(
      script === undefined ? words : ['bash', '--norc', '-c', script, '-', ...words],
      options,
    );
    running.add(child);
    return observed(child);
  };
}

function start(
  words: readonly string[],
  { env = {}, onTerminal, output }: StartOptions,
): ChildProcess {
  const [file = '', ...args] = onTerminal ? onTerminalOf(words) : words;
  return spawn(file, args, {
    env: { PATH: CHILD_PATH, TERM: 'xterm', ...env },
    stdio: ['pipe', output ?? 'pipe', 'pipe'],
    // Without the terminal of the tests: CMD would be in its foreground.
    detached: true,
  });
}

/** By `script`, which gives a program a terminal. Its forms differ. */
function onTerminalOf(words: readonly string[]): readonly string[] {
  if (process.platform === 'darwin') return ['script', '-q', '/dev/null', ...words];
  const line = words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
  return ['script', '--quiet', '--return', '--command', `exec ${line}`, '/dev/null'];
}

function observed(child: ChildProcess): RunningCommand {
  const { stdin, stdout, stderr, pid } = child;
  const texts = { stdout: '', stderr: '' };
  stdout?.on('data', (data: Buffer) => (texts.stdout += data.toString()));
  stderr!.on('data', (data: Buffer) => (texts.stderr += data.toString()));
  // What it runs may have ended before all that is written to it.
  stdin!.on('error', () => undefined);
  let hasEnded = false;
  const ended = once(child, 'close').then(([code, signal]: unknown[]) => {
    hasEnded = true;
    return (code ?? signal) as number | NodeJS.Signals;
  });
  const found = (stream: keyof typeof texts, pattern: RegExp) =>
    until(() => {
      const match = pattern.exec(texts[stream]);
      if (match || !hasEnded) return match ?? false;
      throw new Error(`ended without ${pattern.source}: ${JSON.stringify(texts)}`);
    });
  return {
    pid: pid!,
    get stdout() {
      return texts.stdout;
    },
    get stderr() {
      return texts.stderr;
    },
    ended,
    written: (pattern) => found('stdout', pattern),
    reported: (pattern) => found('stderr', pattern),
    signal: (signal) => void child.kill(signal),
    type: (text) => void stdin!.write(text),
    endInput: () => void stdin!.end(),
    closeErrors: () => stderr!.destroy(),
  };
}
