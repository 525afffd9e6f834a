import type { Logger } from 'pino';

import { StoreUnavailableError } from '../../limiter/errors.js';
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
    if (!(error instanceof StoreUnavailableError)) {
      log.warn({ err: error, key, requestId }, 'approval that nobody uses not released');
    }
    limiter.giveBack(key, requestId, hits);
  }
}
