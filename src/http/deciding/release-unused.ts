import type { Logger } from 'pino';

import type { Limiter } from '../../limiter/limiter.js';

/** An approval that nobody will use. */
interface UnusedApproval {
  readonly key: string;
  readonly requestId: string;
  readonly hits?: number | undefined;
}

/**
 * Releases an approval that is refused with another, before its caller is answered. Where the store can't be asked now,
 * it is given back later.
 */
export async function releaseUnused(
  limiter: Pick<Limiter, 'release' | 'giveBack'>,
  { key, requestId, hits }: UnusedApproval,
  log: Logger,
): Promise<void> {
  log.debug({ key, requestId }, 'nobody uses the approval; released');
  try {
    await limiter.release(key, requestId, { hits });
  } catch (error) {
    log.debug({ err: error, key, requestId }, 'not released yet; given back later');
    limiter.giveBack(key, requestId, hits);
  }
}
