import { SluiceDeniedError } from '../index.js';
import { InterruptedError } from './errors.js';
import { eventOf, type MessageEvent, messageOf } from './failures.js';
import type { Messages } from './messages.js';
import { writeLine } from './output.js';

/**
 * Messages that are objects in JSON, each on a line of its own.
 * @param isQuiet whether only errors are written, and so no denial
 */
export function jsonMessages(key: string, isQuiet: boolean): Messages {
  const write = ({ event, ...fields }: MessageEvent): void => {
    writeLine(JSON.stringify({ event, key, ...fields }));
  };
  return {
    waits: ({ position, waitMillis }) => {
      if (!isQuiet) write({ event: 'waiting', position, waitMillis });
    },
    approved: (requestId) => {
      if (!isQuiet) write({ event: 'approved', requestId });
    },
    lost: (error) => {
      write(eventOf(error));
    },
    unreleased: (error) => {
      write({ event: 'unreleased', error: messageOf(error) });
    },
    unsignalled: (error) => {
      write({ event: 'unsignalled', error: messageOf(error) });
    },
    failed: (error) => {
      const isNews = isQuiet && error instanceof SluiceDeniedError;
      if (!(error instanceof InterruptedError || isNews)) write(eventOf(error));
    },
  };
}
