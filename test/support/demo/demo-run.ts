import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { dirname } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import { CHILD_PATH } from '../child-environment.js';
import { redisProgram } from '../redis-process.js';
import { until } from '../until.js';

const PROGRAM = fileURLToPath(new URL('../../../scripts/demo.mjs', import.meta.url));

const running = new Set<ChildProcess>();

/** A run of `npm run demo` with its output in a pipe. */
export interface DemoRun {
  /** Every line it has printed so far. */
  readonly lines: readonly string[];
  /** Resolves to the first line, past or future, with this text. */
  printed(text: string): Promise<string>;
  signal(signal: NodeJS.Signals): void;
  /** Resolves when all its output is read: to its exit code, or to null if a signal ended it. */
  readonly ended: Promise<number | null>;
}

/** @param temporaryFolder the folder in which it makes its own */
export function startDemo(temporaryFolder: string, ...options: string[]): DemoRun {
  const path = `${dirname(redisProgram()!)}:${CHILD_PATH}`;
  const child = spawn(process.execPath, [PROGRAM, ...options], {
    env: { PATH: path, TMPDIR: temporaryFolder },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  let stderr = '';
  child.stderr.on('data', (data: Buffer) => (stderr += data.toString()));
  let isClosed = false;
  const ended = once(child, 'close').then(() => {
    isClosed = true;
    return child.exitCode;
  });
  return {
    lines,
    ended,
    printed: (text) =>
      until(() => {
        const line = lines.find((printed) => printed.includes(text));
        if (line === undefined && isClosed) throw new Error(`the demo has ended: ${stderr}`);
        return line;
      }),
    signal: (signal) => void child.kill(signal),
  };
}

/** Stops the demos that a failed test has left; for `afterEach`. */
export async function endDemos(): Promise<void> {
  await Promise.all(
    [...running].map(async (child) => {
      child.kill('SIGTERM');
      await once(child, 'exit');
    }),
  );
}

/** The ids of the processes that a demo has printed. */
export function startedPids({ lines }: Pick<DemoRun, 'lines'>): number[] {
  return lines.flatMap((line) => {
    const [, pid] = / is process (\d+), on port/.exec(line) ?? [];
    return pid === undefined ? [] : [Number(pid)];
  });
}

/** Whether there is a process with this id. */
export function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
