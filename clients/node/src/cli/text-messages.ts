import { SluiceDeniedError } from '../index.js';
import { shownTime } from './durations.js';
import { InterruptedError } from './errors.js';
import { messageOf, textOf } from './failures.js';
import type { Messages } from './messages.js';
import { writeError, writeLine } from './output.js';
import { printable } from './printable.js';
import { PROGRAM } from './program.js';
import { sizeOf } from './terminal-size.js';

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
    lost: ({ message }) => {
      write(`the hold is lost, CMD is ended: ${message}`);
    },
    unreleased: (error) => {
      write(`not released, the approval lapses with its hold: ${textOf(error, urls)}`);
    },
    unsignalled: (error) => {
      write(`CMD can't be signalled: ${messageOf(error)}`);
    },
    failed: (error) => {
      const isNews = isQuiet && error instanceof SluiceDeniedError;
      if (error instanceof InterruptedError || isNews) clear();
      else write(textOf(error, urls));
    },
  };
}
