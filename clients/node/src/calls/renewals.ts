import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';

import { SluicePermitLostError } from '../errors.js';

/** A held approval. Its times are those of this process's monotonic clock. */
export interface Hold {
  readonly key: string;
  readonly requestId: string;
  readonly holdMillis: number;
  /** @returns false if the approval no longer counts */
  readonly renew: (signal: AbortSignal | undefined, timeoutMillis: number) => Promise<boolean>;
}

/** So that a hold outlasts the failure of one renewal. */
const RENEWALS_PER_HOLD = 3;
/** After a failure, the next renewal comes sooner, since an outage may end at any time. */
const RETRIES_PER_HOLD = 15;

/**
 * Renews a hold, one renewal after the other, until the signal is aborted.
 * @param heldSince when the hold began at the earliest
 * @throws SluicePermitLostError once it is lost; anything once the signal is aborted
 */
export async function keepRenewed(
  hold: Hold,
  heldSince: number,
  signal: AbortSignal,
): Promise<never> {
  for (;;) {
    const pauseMillis = heldSince + renewalMillis(hold) - performance.now();
    // `ref: false`: it is the work that keeps the process alive. As long as the process lives, the timer fires, so that
    // no hold lapses while work goes on. A process whose work has nothing left to wait for ends, and its hold lapses.
    await pause(pauseMillis, undefined, { ref: false, signal });
    heldSince = await renewBefore(heldSince + hold.holdMillis, hold, signal);
  }
}

/**
 * Renews a hold once. A failed renewal is tried again until the hold has lapsed, which bounds how long this keeps the
 * process alive.
 * @returns when the renewal was sent: Sluice counts the hold from a later moment
 * @throws SluicePermitLostError if the hold is lost; the signal's reason once that is aborted
 */
export async function renewBefore(
  lapsesAt: number,
  hold: Hold,
  signal: AbortSignal | undefined,
): Promise<number> {
  const { key, requestId, holdMillis } = hold;
  let cause: unknown = new Error('the process was suspended or busy');
  for (;;) {
    signal?.throwIfAborted();
    const sentAt = performance.now();
    const millisLeft = lapsesAt - sentAt;
    if (millisLeft <= 0) throw new SluicePermitLostError(key, requestId, cause);
    try {
      // A renewal ends before the next one is due, so that no two are under way at a time.
      const isHeld = await hold.renew(signal, Math.min(renewalMillis(hold), millisLeft));
      if (isHeld) return sentAt;
    } catch (error) {
      cause = error;
      const pauseMillis = Math.min(holdMillis / RETRIES_PER_HOLD, lapsesAt - performance.now());
      await pause(pauseMillis, undefined, { signal }).catch(() => undefined);
      continue;
    }
    throw new SluicePermitLostError(key, requestId);
  }
}

/** How long after a renewal the next one is due. */
export function renewalMillis({ holdMillis }: Pick<Hold, 'holdMillis'>): number {
  return holdMillis / RENEWALS_PER_HOLD;
}
