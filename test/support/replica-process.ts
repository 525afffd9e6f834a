import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { CHILD_PATH } from './child-environment.js';
import { until } from './until.js';

/** The folder of the package, whose program is in `dist`. */
const PACKAGE = fileURLToPath(new URL('../../', import.meta.url));

export type LogLine = Readonly<Record<string, unknown>>;

/** A replica in a process of its own, started like in the image. */
export interface ReplicaProcess {
  readonly url: string;
  readonly pid: number;
  /** Its id in Redis; empty for the embedded limiter. */
  readonly id: string;
  /** Every line it has logged so far, parsed. */
  readonly log: readonly LogLine[];
  /** Its standard error so far. */
  readonly stderr: string;
  /** The first line, past or future, for which `matches` holds. */
  logged(matches: (line: LogLine) => boolean): Promise<LogLine>;
  /** Resolves when it has ended and its log is complete. @returns the exit code, or the signal that ended it */
  kill(signal: NodeJS.Signals): Promise<number | NodeJS.Signals>;
  /** Sends a signal that does not end it, such as SIGSTOP. */
  signal(signal: NodeJS.Signals): void;
  /** Whether its log is read from now on. What nobody reads fills the pipe. At its end the rest is read. */
  readLog(isRead: boolean): void;
}

/** The output and the end of a process that is expected not to serve. */
export interface EndedProcess {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

type Environment = Readonly<Record<string, string>>;

/** The default settings of a service in a test. */
export const TEST_SETTINGS: Environment = {
  PORT: '0',
  HOST: '127.0.0.1',
  // So long that a busy machine does not look like an overload.
  MAX_EVENT_LOOP_DELAY_MILLIS: '60000',
};

const running = new Set<ChildProcess>();

/**
 * Starts a replica on a free port and resolves when it serves.
 * @param folder of the package. Another version has another folder.
 */
export async function startReplica(
  environment: Environment,
  folder = PACKAGE,
): Promise<ReplicaProcess> {
  const child = spawnReplica(environment, folder);
  const log: LogLine[] = [];
  // Not by readline, which also ends a line at U+2028. A process that is killed may have written a part of its last line.
  let rest = '';
  const output = child.stdout!.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop()!;
    for (const line of lines) log.push(JSON.parse(line) as LogLine);
  });
  let stderr = '';
  child.stderr!.on('data', (data: Buffer) => (stderr += data.toString()));

  // The exit event may come before the last lines of its log have been read.
  let isClosed = false;
  const exited = once(child, 'exit');
  const closed = new Promise<void>((resolve) => {
    child.once('close', () => {
      isClosed = true;
      resolve();
    });
  });

  const logged = (matches: (line: LogLine) => boolean): Promise<LogLine> =>
    until(() => {
      const line = log.find(matches);
      if (line || !isClosed) return line;
      throw new Error(`the replica ended with ${child.exitCode ?? child.signalCode}: ${stderr}`);
    });
  const { port, replica } = await logged((line) => line.msg === 'serving');
  return {
    url: `http://127.0.0.1:${String(port)}`,
    pid: child.pid!,
    id: typeof replica === 'string' ? replica : '',
    log,
    get stderr() {
      return stderr;
    },
    logged,
    signal: (signal) => void child.kill(signal),
    readLog: (isWanted) => {
      if (isWanted) output.resume();
      else output.pause();
    },
    kill: async (signal) => {
      child.kill(signal);
      await exited;
      output.resume();
      await closed;
      return child.exitCode ?? child.signalCode!;
    },
  };
}

/** Starts a replica that will not serve, and waits for its end. */
export async function startFailingReplica(environment: Environment): Promise<EndedProcess> {
  const child = spawnReplica(environment);
  let stdout = '';
  let stderr = '';
  child.stdout!.on('data', (data: Buffer) => (stdout += data.toString()));
  child.stderr!.on('data', (data: Buffer) => (stderr += data.toString()));
  await once(child, 'close');
  return { code: child.exitCode, stdout, stderr };
}

/** Kills every replica that a test file has started; for `afterEach` or `afterAll`. */
export async function killReplicas(): Promise<void> {
  await Promise.all(
    [...running].map(async (child) => {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }),
  );
}

function spawnReplica(environment: Environment, folder = PACKAGE): ChildProcess {
  const child = spawn(process.execPath, [join(folder, 'dist', 'main.js')], {
    env: { PATH: CHILD_PATH, ...TEST_SETTINGS, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}
