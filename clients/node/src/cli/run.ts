import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { isatty } from 'node:tty';

import type { Invocation } from './arguments.js';
import { withClient } from './connection.js';
import { codeOfSignal, CommandStartError, EXIT } from './errors.js';
import type { Messages } from './messages.js';
import { askingOf } from './options.js';
import { Signals } from './signals.js';

const DEFAULT_GRACE_MILLIS = 10_000;

export function run(invocation: Invocation): Promise<number> {
  const { values, commandLine } = invocation;
  const { grace = DEFAULT_GRACE_MILLIS } = values;
  return withClient(invocation, async (client, key, messages) => {
    const signals = new Signals();
    const work = async (lost: AbortSignal, requestId: string): Promise<number> => {
      messages.approved(requestId);
      const environment = { SLUICE_KEY: key, SLUICE_REQUEST_ID: requestId };
      const child = await Child.start(commandLine, environment, messages.unsignalled);
      signals.receiver = (signal) => child.pass(signal);
      return codeOf(child, lost, grace, messages);
    };
    try {
      return await client.withPermit(key, work, {
        ...askingOf(values),
        holdMillis: values.hold,
        wait: !values['no-wait'],
        maxWaitMillis: values['max-wait'],
        signal: signals.interruption,
        onProgress: messages.waits,
        onReleaseError: messages.unreleased,
      });
    } finally {
      signals.release();
    }
  });
}

/** Waits for the end of CMD, and ends it if the hold is lost. @returns the exit code of `run` */
async function codeOf(
  child: Child,
  lost: AbortSignal,
  graceMillis: number,
  messages: Messages,
): Promise<number> {
  let stopped: Promise<void> | undefined;
  const stop = (): void => {
    messages.lost(lost.reason as Error);
    stopped = child.stop(graceMillis);
  };
  if (lost.aborted) stop();
  else lost.addEventListener('abort', stop);
  const code = await child.ended;
  lost.removeEventListener('abort', stop);
  if (!stopped) return code;
  await stopped;
  return EXIT.LOST;
}

/** A terminal sends these to its whole foreground group, of which CMD is one. */
const FROM_TERMINAL: readonly NodeJS.Signals[] = ['SIGINT', 'SIGQUIT'];
/** Nothing tells when the last process of a group has ended. */
const LOOK_MILLIS = 50;

/**
 * CMD, which uses the standard streams of this process. Without a terminal it has a process group of its own, and signals
 * go to the whole group. With a terminal it stays in the foreground group, so that it can read from the terminal.
 */
class Child {
  /** The exit code, or 128 and the number of the signal that has ended it. */
  readonly ended: Promise<number>;

  private constructor(
    private readonly child: ChildProcess,
    private readonly pid: number,
    private readonly hasOwnGroup: boolean,
    private readonly onSignalError: (error: unknown) => void,
  ) {
    this.ended = once(child, 'exit').then(([code, signal]: unknown[]) =>
      typeof code === 'number' ? code : codeOfSignal(signal as NodeJS.Signals),
    );
  }

  /**
   * Starts CMD.
   * @param environment is added to the environment of this process
   * @param onSignalError gets the error of each signal that can't be sent, as to a process of another user
   * @throws CommandStartError if it can't be executed
   */
  static async start(
    [command = '', ...args]: readonly string[],
    environment: Readonly<Record<string, string>>,
    onSignalError: (error: unknown) => void,
  ): Promise<Child> {
    const hasOwnGroup = ![0, 1, 2].some((descriptor) => isatty(descriptor));
    try {
      const child = spawn(command, args, {
        stdio: 'inherit',
        env: { ...process.env, ...environment },
        detached: hasOwnGroup,
      });
      await once(child, 'spawn');
      const { pid } = child;
      // A signal to the group 0 would go to this process.
      if (!pid) throw new Error('it has no process id');
      return new Child(child, pid, hasOwnGroup, onSignalError);
    } catch (error) {
      throw new CommandStartError(command, error);
    }
  }

  pass(signal: NodeJS.Signals): void {
    if (!this.hasOwnGroup && FROM_TERMINAL.includes(signal)) return;
    this.#send(signal);
  }

  /** Ends it by SIGTERM. Whatever of it still goes on after `graceMillis` is ended by SIGKILL. */
  async stop(graceMillis: number): Promise<void> {
    const killsAt = performance.now() + graceMillis;
    this.#send('SIGTERM');
    while (this.#isAlive()) {
      if (performance.now() >= killsAt) {
        this.#send('SIGKILL');
        return;
      }
      await sleep(LOOK_MILLIS);
    }
  }

  #isAlive(): boolean {
    if (this.hasOwnGroup) return this.#send(0);
    return this.child.exitCode === null && this.child.signalCode === null;
  }

  /** Sends a signal, or with 0 none. @returns false if nothing is there any more */
  #send(signal: NodeJS.Signals | 0): boolean {
    if (!this.hasOwnGroup) return this.child.kill(signal);
    try {
      return process.kill(-this.pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
      if (signal !== 0) this.onSignalError(error);
      return true;
    }
  }
}
