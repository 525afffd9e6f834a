import { SluiceDeniedError, type WaitProgress } from '../index.js';
import { shownTime } from './durations.js';
import { InterruptedError, OutputError, PROGRAM } from './errors.js';
import { eventOf, type MessageEvent, messageOf, textOf } from './failures.js';

/** What a command writes on standard error. */
export interface Messages {
  readonly waits: (place: WaitProgress) => void;
  /** Its wait is over. */
  readonly approved: (requestId: string) => void;
  /** The hold is lost, and CMD is ended. */
  readonly lost: (error: Error) => void;
  readonly unreleased: (error: unknown) => void;
  /** CMD can't be sent a signal. */
  readonly unsignalled: (error: unknown) => void;
  /** The command has failed, was denied, or was interrupted. */
  readonly failed: (error: unknown) => void;
}

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

/**
 * Messages that are objects in JSON, each on a line of its own.
 * @param isQuiet whether only errors are written, and so no denial
 */
export function jsonMessages(key: string, isQuiet: boolean): Messages {
  const write = ({ event, ...fields }: MessageEvent): void =>
    writeLine(JSON.stringify({ event, key, ...fields }));
  return {
    waits: ({ position, waitMillis }) => {
      if (!isQuiet) write({ event: 'waiting', position, waitMillis });
    },
    approved: (requestId) => {
      if (!isQuiet) write({ event: 'approved', requestId });
    },
    lost: (error) => write(eventOf(error)),
    unreleased: (error) => write({ event: 'unreleased', error: messageOf(error) }),
    unsignalled: (error) => write({ event: 'unsignalled', error: messageOf(error) }),
    failed: (error) => {
      const isNews = isQuiet && error instanceof SluiceDeniedError;
      if (!(error instanceof InterruptedError || isNews)) write(eventOf(error));
    },
  };
}

/** Moves the cursor to the start of the line, and clears the line. */
const CLEAR_LINE = '\r\u001b[K';

/**
 * Lines for a log. On a terminal, the place in the queue is one line, which is kept up to date.
 * @param urls the addresses of Sluice
 * @param isQuiet whether only errors are written, and so no denial
 */
export function textMessages(key: string, urls: readonly string[], isQuiet: boolean): Messages {
  const { stderr } = process;
  let hasWaited = false;
  let isLineOpen = false;
  const clear = (): void => {
    if (isLineOpen) writeError(CLEAR_LINE);
    isLineOpen = false;
  };
  const write = (text: string): void => {
    clear();
    writeLine(`${PROGRAM}: ${key}: ${text}`);
  };
  return {
    waits: ({ position, waitMillis }) => {
      if (isQuiet) return;
      const estimate = waitMillis > 0 ? `, about ${shownTime(waitMillis)}` : '';
      const place = `position ${position}${estimate}`;
      if (stderr.isTTY) {
        // A line that the terminal wraps could not be cleared.
        writeError(CLEAR_LINE + printable(`${key}: ${place}`).slice(0, sizeOf(stderr).columns - 1));
        isLineOpen = true;
      } else if (!hasWaited) {
        write(`waits, ${place}`);
      }
      hasWaited = true;
    },
    approved: clear,
    lost: ({ message }) => write(`the hold is lost, CMD is ended: ${message}`),
    unreleased: (error) =>
      write(`not released, the approval lapses with its hold: ${textOf(error, urls)}`),
    unsignalled: (error) => write(`CMD can't be signalled: ${messageOf(error)}`),
    failed: (error) => {
      const isNews = isQuiet && error instanceof SluiceDeniedError;
      if (error instanceof InterruptedError || isNews) clear();
      else write(textOf(error, urls));
    },
  };
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
