import { BEAT } from '../../../src/redis/caller-history.js';
import type { DriftingClock } from './drifting-clock.js';

/**
 * Redis's time as a replica knows it, by which it says the windows of calendars: it asks regularly, and counts on by its
 * own clock. So what it knows is wrong for some time after Redis's clock has gone back, and by its clock's drift while
 * Redis is down.
 */
export class KnownTime {
  /** What was heard last, and when by the replica's clock. */
  #heard: { readonly time: number; readonly at: number };

  constructor(
    private readonly redisNow: () => number,
    private readonly clock: DriftingClock,
    private readonly leaseMillis: number,
  ) {
    this.#heard = { time: redisNow(), at: clock.now() };
  }

  /** @param isHeard whether Redis answers this replica now */
  now(isHeard: boolean): number {
    const now = this.clock.now();
    if (isHeard && now - this.#heard.at >= BEAT * this.leaseMillis) {
      this.#heard = { time: this.redisNow(), at: now };
    }
    const { time, at } = this.#heard;
    return Math.floor(time + now - at);
  }
}
