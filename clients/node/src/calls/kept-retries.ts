import { performance } from 'node:perf_hooks';

import type { SluiceUnavailableError } from '../errors.js';
import { pauseMillis } from './pauses.js';
import { type Retrying, STOPPING } from './pending-request.js';

/** From here on, pauses grow no longer: 2.7 s, which is a small part of the time for which a place is kept. */
const LAST_GROWTH = 3;

/**
 * When a wait that keeps its place is sent again after a failure. Each address is asked before a pause. The wait goes on
 * while its place may be kept, and as often as any request in any case.
 */
export class KeptRetries {
  #mayHavePlace = false;
  #failingSince: number | undefined;
  /** How many addresses have failed it since the last pause. */
  #failures = 0;
  #pauses = 0;

  /** @param endsAt when its place ends in any case; Infinity if it has no such time */
  constructor(
    private readonly retrying: Retrying,
    private readonly keepMillis: number,
    private readonly endsAt: number,
  ) {}

  /** Sluice has answered that the wait has its place. */
  placed(): void {
    this.#mayHavePlace = true;
    this.#failingSince = undefined;
    this.#failures = 0;
    this.#pauses = 0;
  }

  /** How long to wait in ms before it is sent again; Infinity if it must not be. */
  pauseAfter({ status, code, mayHaveCounted, retryAfterSeconds }: SluiceUnavailableError): number {
    const now = performance.now();
    // A replica that stops keeps the places of its waiters, and asks for no pause.
    const isHandedOver = retryAfterSeconds === 0;
    this.#mayHavePlace ||= mayHaveCounted;
    this.#failingSince = isHandedOver ? now : (this.#failingSince ?? now);
    this.#failures += 1;
    const isOfAddress = isHandedOver || status === undefined || code === STOPPING;
    // One address may lead to several replicas.
    const addresses = Math.max(this.retrying.addresses, isHandedOver ? 2 : 1);
    if (isOfAddress && this.#failures < addresses) return 0;
    const millis = pauseMillis(retryAfterSeconds, Math.min(this.#pauses, LAST_GROWTH));
    const keptUntil = Math.min(this.#failingSince + this.keepMillis, this.endsAt);
    const isKept = this.#mayHavePlace && now + millis < keptUntil;
    if (!isKept && this.#pauses >= this.retrying.retries) return Infinity;
    this.#failures = 0;
    this.#pauses += 1;
    return millis;
  }
}
