import { constants } from 'node:os';

import { EXIT, SIGNAL_BASE } from './exit-codes.js';

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

/** A result could not be written. */
export class OutputError extends Error {
  override readonly name = 'OutputError';

  constructor(cause: unknown) {
    super(`the result can't be written: ${(cause as Error).message}`, { cause });
  }
}

/** CMD could not be started. */
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
