import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('work-with-permit.mjs', import.meta.url));

/** A process whose work has a permit of a key, with a maximum of one and a hold of 1000 ms. */
export interface Worker {
  readonly requestId: string;
  /** Resolves when it has ended. @returns its exit code, or the signal that ended it */
  readonly ended: Promise<number | string>;
  kill(signal: NodeJS.Signals): void;
}

export type Work = 'ends when its permit is lost' | 'has nothing to wait for' | 'ends';

/** Starts workers, which are killed after each test. Each has begun its work when its promise resolves. */
export function useWorkers(): (url: string, key: string, work: Work) => Promise<Worker> {
  const running = new Set<ChildProcess>();
  afterEach(() => {
    for (const child of running) child.kill('SIGKILL');
    running.clear();
  });
  return async (url, key, work) => {
    const child = spawn(process.execPath, [PROGRAM, url, key, work], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    running.add(child);
    const ended = once(child, 'exit').then(([code, signal]) => (code ?? signal) as number | string);
    const [requestId] = (await once(createInterface(child.stdout), 'line')) as [string];
    return { requestId, ended, kill: (signal) => void child.kill(signal) };
  };
}
