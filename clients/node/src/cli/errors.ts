import { readFileSync } from 'node:fs';
import { constants } from 'node:os';

/** The exit codes, by their names in sysexits.h where one fits. CMD's own code, and 128 and a signal, come beside them. */
export const EXIT = {
  OK: 0,
  NOT_FOUND: 1,
  USAGE: 64,
  UNAVAILABLE: 69,
  LOST: 70,
  UNWRITABLE: 74,
  DENIED: 75,
  NOT_EXECUTABLE: 126,
  NO_SUCH_COMMAND: 127,
} as const;

/** Of a process that a signal has ended, from 129 on. */
const SIGNAL_BASE = 128;

/** The command line is wrong. The message is one line. */
export class CommandLineError extends Error {
  override readonly name = 'CommandLineError';
}

/** A signal has ended the wait for an approval. */
export class InterruptedError extends Error {
  override readonly name = 'InterruptedError';

  constructor(readonly signal: NodeJS.Signals) {
    super(`ended by ${signal}`);
  }
}

export class OutputError extends Error {
  override readonly name = 'OutputError';

  constructor(cause: unknown) {
    super(`the result can't be written: ${(cause as Error).message}`, { cause });
  }
}

export class CommandStartError extends Error {
  override readonly name = 'CommandStartError';
  readonly exitCode: number;

  constructor(command: string, cause: unknown) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const isMissing = code === 'ENOENT';
    super(`${command}: ${isMissing ? 'not found' : `can't be executed: ${code ?? message}`}`, {
      cause,
    });
    this.exitCode = isMissing ? EXIT.NO_SUCH_COMMAND : EXIT.NOT_EXECUTABLE;
  }
}

/** The exit code of a process that a signal has ended, as of a shell. */
export function codeOfSignal(signal: NodeJS.Signals): number {
  return SIGNAL_BASE + constants.signals[signal];
}

export const PROGRAM = 'sluice-client';

/** Beside the folder with the compiled files. */
const PACKAGE = new URL('../../package.json', import.meta.url);

export function programVersion(): string {
  return (JSON.parse(readFileSync(PACKAGE, 'utf8')) as { readonly version: string }).version;
}
