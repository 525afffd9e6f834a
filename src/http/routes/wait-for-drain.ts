import type { Response } from 'express';

import type { Clock } from '../../common/clock.js';

/** How long a client may read nothing of a long answer. A client that stopped would hold it for ever. */
const READ_TIMEOUT_MILLIS = 30_000;

/**
 * Waits until the client has read what was written. Cuts a client that does not read.
 * @returns false if the client has disconnected or is cut
 */
export async function waitForDrain(response: Response, clock: Clock): Promise<boolean> {
  await new Promise<void>((resolve) => {
    const end = (): void => {
      cancelTimer();
      response.off('drain', end).off('close', end);
      resolve();
    };
    // A response that waits for its turn on a connection is never told that this is closed.
    const cancelTimer = clock.after(READ_TIMEOUT_MILLIS, () => {
      response.destroy();
      end();
    });
    response.on('drain', end).on('close', end);
  });
  return !response.destroyed;
}
