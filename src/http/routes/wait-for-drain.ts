import type { Response } from 'express';

import type { Clock } from '../../common/clock.js';

/**
 * How long a client may pause reading a long answer. Without a bound, a client that stopped would hold the answer for
 * ever.
 */
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
    // A response that waits for its turn on a connection gets no event when the connection closes.
    const cancelTimer = clock.after(READ_TIMEOUT_MILLIS, () => {
      response.destroy();
      end();
    });
    response.on('drain', end).on('close', end);
  });
  return !response.destroyed;
}
