import { SluiceDeniedError, type WaitProgress } from '../index.js';
import { shownTime } from './durations.js';
import { InterruptedError, OutputError, PROGRAM } from './errors.js';
import { eventOf, type MessageEvent, messageOf, textOf } from './failures.js';
import type { Values } from './options.js';

/** Writes the lines of a result on standard output. @throws OutputError if they can't be written */
export function print(...lines: readonly string[]): Promise<void> {
  const text = lines.map((line) => `${printable(line)}\n`).join('');
  return new Promise((resolve, reject) => {
    const fail = (cause: unknown): void => reject(new OutputError(cause));
    try {
      process.stdout.write(text, (error) => {
        if (error) fail(error);
        else resolve();
      });
    } catch (error) {
      // Node 20 throws if a file can't be written.
      fail(error);
    }
  });
}

export function printJson(result: object): Promise<void> {
  return print(JSON.stringify(result));
}

/** Writes a line on standard error. */
export function writeLine(line: string): void {
  writeError(`${printable(line)}\n`);
}

/** Writes on standard error, as it is. A log that can't be written stops nothing: CMD keeps its approval. */
function writeError(text: string): void {
  try {
    process.stderr.write(text);
  } catch {
    // There is nowhere to say so.
  }
}

/** Moves the cursor to the start of the line, and clears the line. */
const CLEAR_LINE = '\r\u001b[K';

/**
 * What a command writes on standard error: lines for a log, or with `json` objects. On a terminal, the place in the queue is
 * one line, which is kept up to date.
 */
export class Messages {
  #hasWaited = false;
  #isLineOpen = false;

  /**
   * @param urls the addresses of Sluice
   * @param values `quiet`: only errors are written, and so no denial
   */
  constructor(
    private readonly key: string,
    private readonly urls: readonly string[],
    private readonly values: Pick<Values, 'json' | 'quiet'>,
  ) {}

  readonly waits = ({ position, waitMillis }: WaitProgress): void => {
    const { key, values } = this;
    const estimate = waitMillis > 0 ? `, about ${shownTime(waitMillis)}` : '';
    const place = `position ${position}${estimate}`;
    const { stderr } = process;
    if (stderr.isTTY && !values.json && !values.quiet) {
      // A line that the terminal wraps could not be cleared.
      writeError(CLEAR_LINE + printable(`${key}: ${place}`).slice(0, sizeOf(stderr).columns - 1));
      this.#isLineOpen = true;
    } else {
      const text = this.#hasWaited ? undefined : `waits, ${place}`;
      this.#say({ event: 'waiting', position, waitMillis }, text, true);
    }
    this.#hasWaited = true;
  };

  /** Its wait is over. */
  approved(requestId: string): void {
    this.#say({ event: 'approved', requestId }, undefined, true);
  }

  /** The hold is lost, and CMD is ended. */
  lost(error: Error): void {
    this.#say(eventOf(error), `the hold is lost, CMD is ended: ${error.message}`);
  }

  readonly unreleased = (error: unknown): void => {
    const text = `not released, the approval lapses with its hold: ${textOf(error, this.urls)}`;
    this.#say({ event: 'unreleased', error: messageOf(error) }, text);
  };

  /** CMD can't be sent a signal. */
  readonly unsignalled = (error: unknown): void => {
    const message = messageOf(error);
    this.#say({ event: 'unsignalled', error: message }, `CMD can't be signalled: ${message}`);
  };

  /** The command has failed, was denied, or was interrupted. */
  failed(error: unknown): void {
    if (error instanceof InterruptedError) this.#clear();
    else this.#say(eventOf(error), textOf(error, this.urls), error instanceof SluiceDeniedError);
  }

  /** @param text nothing, if only objects say it @param isNews whether it is no error */
  #say({ event, ...fields }: MessageEvent, text: string | undefined, isNews = false): void {
    const { key, values } = this;
    this.#clear();
    if (values.quiet && isNews) return;
    if (values.json) writeLine(JSON.stringify({ event, key, ...fields }));
    else if (text !== undefined) writeLine(`${PROGRAM}: ${key}: ${text}`);
  }

  #clear(): void {
    if (this.#isLineOpen) writeError(CLEAR_LINE);
    this.#isLineOpen = false;
  }
}

/** They could break a line, change the terminal, or show the text in another order. No file can have halves of surrogate pairs. */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}\p{Cs}]/gu;

/** A text for a line of a terminal: other callers choose keys. What would not be seen as itself is written as `\u009b`, also in JSON. */
export function printable(text: string): string {
  return text.replace(
    UNPRINTABLE,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

interface Sized {
  readonly columns: number;
  readonly rows: number;
}

/** The size of a terminal. Some do not say theirs. */
export function sizeOf({ columns, rows }: Sized): Sized {
  return { columns: columns || 80, rows: rows || 24 };
}
