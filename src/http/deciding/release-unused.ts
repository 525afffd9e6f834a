import type { Logger } from 'pino';

import type { Limiter } from '../../limiter/limiter.js';

/** Releases the approval of a client that disconnected while its check was decided. */
export async function releaseUnused(
  limiter: Pick<Limiter, 'release'>,
  key: string,
  requestId: string,
  log: Logger,
): Promise<void> {
  log.debug({ key, requestId }, 'client disconnected before its approval; released');
  try {
    await limiter.release(key, requestId);
  } catch (error) {
    log.warn({ err: error, key, requestId }, 'approval of a client that disconnected not released');
  }
}
