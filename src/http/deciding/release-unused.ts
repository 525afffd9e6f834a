import type { Logger } from 'pino';

import type { Limiter } from '../../limiter/limiter.js';

/** An approval that nobody will use. */
interface UnusedApproval {
  readonly key: string;
  readonly requestId: string;
  readonly hits?: number | undefined;
}

/**
 * Releases an approval whose client disconnected while its check was decided, or that is refused with another. An error is
 * logged: the approval counts until its window ends then.
 */
export async function releaseUnused(
  limiter: Pick<Limiter, 'release'>,
  { key, requestId, hits }: UnusedApproval,
  log: Logger,
): Promise<void> {
  log.debug({ key, requestId }, 'nobody uses the approval; released');
  try {
    await limiter.release(key, requestId, { hits });
  } catch (error) {
    log.warn({ err: error, key, requestId }, 'approval that nobody uses not released');
  }
}
