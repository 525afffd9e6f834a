import { hostname } from 'node:os';
import { performance } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';

import type { Approval, Decision } from '../decision.js';
import { SluiceDeniedError, SluicePermitLostError } from '../errors.js';
import type { CheckOptions, ClientOptions, PermitOptions, WaitOptions } from '../options.js';
import { onAbort } from './pending-request.js';
import { MOST_BYTES, notShort } from './known-options.js';

/** A held approval. Its times are those of this process's monotonic clock. */
export interface Hold {
  readonly key: string;
  readonly requestId: string;
  readonly holdMillis: number;
  /** @returns false if the approval no longer counts */
  readonly renew: (signal: AbortSignal, timeoutMillis: number) => Promise<boolean>;
}

/** So that a hold outlasts the failure of one renewal. */
const RENEWALS_PER_HOLD = 3;
/** After a failure, the next renewal comes sooner, since an outage may end at any time. */
const RETRIES_PER_HOLD = 15;

/**
 * Runs `work` while an approval holds, and renews the hold.
 * @param hold undefined if there is nothing to renew
 * @param askedAt when the check was made
 * @param callers also aborts the work
 * @param work gets a signal that is aborted once the hold is lost. At the end it is not aborted: what `work` returns may
 *     still use it
 * @param giveBack is called at the end, unless the work was told that the permit no longer counts
 * @throws SluicePermitLostError if it is lost already; the reason of the caller's signal if that is aborted by then
 */
export async function whileHeld<T>(
  hold: Hold | undefined,
  askedAt: number,
  callers: AbortSignal | undefined,
  work: (signal: AbortSignal) => T | Promise<T>,
  giveBack: () => Promise<unknown>,
): Promise<T> {
  const working = new AbortController();
  const { signal } = working;
  const over = new AbortController();
  const endListening = callers && onAbort(callers, () => working.abort(callers.reason));
  try {
    callers?.throwIfAborted();
    if (hold) {
      const since = await heldSince(hold, askedAt, signal);
      keepRenewed(hold, since, over.signal).catch((error: unknown) => {
        if (!over.signal.aborted) working.abort(error);
      });
    }
    signal.throwIfAborted();
    return await work(signal);
  } finally {
    endListening?.();
    over.abort();
    if (!(signal.reason instanceof SluicePermitLostError)) await giveBack();
  }
}

/** When the hold began at the earliest. */
async function heldSince(hold: Hold, askedAt: number, signal: AbortSignal): Promise<number> {
  const now = performance.now();
  if (now - askedAt < renewalMillis(hold)) return askedAt;
  // It has waited, and nothing says how long ago its turn came: the process may have been suspended since.
  return renewBefore(now + hold.holdMillis, hold, signal);
}

/**
 * Renews a hold, one renewal after the other, until the signal is aborted.
 * @param heldSince when the hold began at the earliest
 * @throws SluicePermitLostError once it is lost; anything once the signal is aborted
 */
async function keepRenewed(hold: Hold, heldSince: number, signal: AbortSignal): Promise<never> {
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
async function renewBefore(lapsesAt: number, hold: Hold, signal: AbortSignal): Promise<number> {
  const { key, requestId, holdMillis } = hold;
  let cause: unknown = new Error('the process was suspended or busy');
  for (;;) {
    signal.throwIfAborted();
    const sentAt = performance.now();
    const millisLeft = lapsesAt - sentAt;
    if (millisLeft <= 0) throw new SluicePermitLostError(key, requestId, cause);
    // A renewal ends before the next one is due, so that no two are under way at a time.
    const renewal = hold.renew(signal, Math.min(renewalMillis(hold), millisLeft));
    const isHeld = await renewal.catch((error: unknown) => {
      cause = error;
    });
    if (isHeld) return sentAt;
    if (isHeld === false) throw new SluicePermitLostError(key, requestId);
    const pauseMillis = Math.min(holdMillis / RETRIES_PER_HOLD, lapsesAt - performance.now());
    await pause(pauseMillis, undefined, { signal }).catch(() => undefined);
  }
}

function renewalMillis({ holdMillis }: Hold): number {
  return holdMillis / RENEWALS_PER_HOLD;
}

interface Asked {
  check(key: string, options: CheckOptions): Promise<Decision>;
  wait(key: string, options: WaitOptions): Promise<Decision>;
}

/**
 * Waits for an approval, or asks once if `wait` is false.
 * @param options.quota whether an approval of a single question has its `quota`, as of `CheckOptions`
 * @throws SluiceDeniedError if it is denied; as `check`
 */
export async function approvalOf(
  client: Asked,
  key: string,
  options: PermitOptions & Pick<CheckOptions, 'quota'>,
): Promise<Approval> {
  const { wait = true, maxWaitMillis, onProgress, quota, ...asking } = options;
  const decision = await (wait
    ? client.wait(key, { ...asking, maxWaitMillis, onProgress })
    : client.check(key, { ...asking, quota }));
  if (decision.approved) return decision;
  throw new SluiceDeniedError(key, decision.retryAfterSeconds, decision.limit);
}

/** Sluice rejects a part of a character, which a cut might leave. */
const NOT_PRINTED = /[^\x21-\x7e]/g;

/**
 * The name that held approvals show.
 * @param name by default host and process; `false` for nobody
 * @throws RangeError if it is empty or too long
 */
export function holderOf(name: ClientOptions['holder'] = hostAndProcess()): string | undefined {
  if (name === false) return undefined;
  const wrong = notShort('holder', name);
  if (wrong) throw wrong;
  return name;
}

function hostAndProcess(): string {
  const ofProcess = `:${process.pid}`;
  const host = hostname().replace(NOT_PRINTED, '_');
  return host.slice(0, MOST_BYTES - ofProcess.length) + ofProcess;
}
