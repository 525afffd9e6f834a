import { fstatSync } from 'node:fs';
import { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

import { type DestinationStream, type LevelWithSilent, type Logger, pino } from 'pino';

/** Structured lines on standard output. The contract requires the level as a word. */
export function createLogger(level: LevelWithSilent, destination?: DestinationStream): Logger {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: describe },
  };
  return destination ? pino(options, destination) : pino(options);
}

/**
 * An error without the properties that libraries attach to it. ioredis attaches the command that failed, and
 * the arguments of an AUTH include the password.
 */
function describe(error: unknown): object {
  const { type, message, stack } = pino.stdSerializers.err(error as Error);
  const code = error instanceof Error && 'code' in error ? { code: error.code } : {};
  return { type, message, stack, ...code };
}

const STANDARD_OUTPUT = 1;
/** The most bytes that wait until they can be written. */
const MOST_WAITING = 1024 * 1024;
const FLUSH_STEP_MILLIS = 10;

/**
 * Standard output, for the log. A line that can't be written never stops the process: it waits with others up to a
 * bound, and is dropped beyond it.
 */
abstract class LogOutput implements DestinationStream {
  dropped = 0;
  /** Called when lines can be written again, with the number of lines that were dropped meanwhile. */
  onRecovery: (dropped: number) => void = () => undefined;
  #reported = 0;

  abstract write(line: string): void;
  /** Resolves when all lines are out, or after `millis`, with whether they are. */
  abstract flush(millis: number): Promise<boolean>;

  protected written(): void {
    const dropped = this.dropped - this.#reported;
    if (dropped === 0) return;
    this.#reported = this.dropped;
    // Not within the write of another line.
    setImmediate(() => this.onRecovery(dropped));
  }
}

/**
 * A pipe or a socket, which is full while its reader reads nothing. pino's own destination would block in the write, and
 * the process with it. A socket of Node writes at once what fits, and the rest later.
 */
class PipeOutput extends LogOutput {
  readonly #socket = new Socket({ fd: STANDARD_OUTPUT, readable: false, writable: true });

  constructor() {
    super();
    // The reader is gone, and no later line can be written.
    this.#socket.on('error', () => (this.dropped += 1));
    this.#socket.on('drain', () => this.written());
  }

  write(line: string): void {
    if (!this.#socket.writable || this.#socket.writableLength + line.length > MOST_WAITING) {
      this.dropped += 1;
    } else {
      this.#socket.write(line);
    }
  }

  async flush(millis: number): Promise<boolean> {
    const deadline = performance.now() + millis;
    const isOut = (): boolean => this.#socket.destroyed || this.#socket.writableLength === 0;
    while (!isOut() && performance.now() < deadline) await delay(FLUSH_STEP_MILLIS);
    return isOut();
  }
}

/** A file, a device or a terminal. A write ends at once. It fails while the disk is full, and is tried with the next line. */
class FileOutput extends LogOutput {
  readonly #file = pino.destination({
    dest: STANDARD_OUTPUT,
    sync: true,
    maxLength: MOST_WAITING,
    // By default it sleeps until the device takes the line.
    retryEAGAIN: () => false,
  });

  constructor() {
    super();
    // pino passes errors on to other listeners. Without one, they would be thrown where a line is logged.
    this.#file.on('error', () => undefined);
    this.#file.on('drop', () => (this.dropped += 1));
    this.#file.on('write', () => this.written());
  }

  write(line: string): void {
    this.#file.write(line);
  }

  flush(): Promise<boolean> {
    return Promise.resolve(true);
  }
}

/** Opens standard output. There must be one output at most. */
export function openLogOutput(): LogOutput {
  const stats = fstatSync(STANDARD_OUTPUT);
  return stats.isFIFO() || stats.isSocket() ? new PipeOutput() : new FileOutput();
}
