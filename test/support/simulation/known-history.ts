import { BEAT, CONTACT_GAP } from '../../../src/redis/caller-history.js';

/**
 * What a replica knows of the time before its calls, without the timers by which the product learns it: it is heard as
 * long as Redis is there and the replica does not stand still. Times are by Redis's clock.
 */
export class KnownHistory {
  /** Since when it has its rules. */
  loadedAt: number;
  #since: number;
  /** Since when nothing is heard. */
  #lostAt: number | undefined;

  constructor(
    private readonly redisNow: () => number,
    private readonly leaseMillis: number,
  ) {
    this.loadedAt = redisNow();
    this.#since = redisNow();
  }

  /** Whether Redis answers now. */
  get isHeard(): boolean {
    return this.#lostAt === undefined;
  }

  lost(): void {
    this.#lostAt ??= this.redisNow();
  }

  regained(): void {
    const now = this.redisNow();
    const silent = now - (this.#lostAt ?? now);
    if (silent < 0 || silent >= CONTACT_GAP * this.leaseMillis) this.#since = now;
    this.#lostAt = undefined;
  }

  /** Redis's clock has gone back. Its next time is heard at once if any is, and earlier ones show nothing any more. */
  clockWentBack(millis: number): void {
    this.loadedAt -= millis;
    if (this.#lostAt === undefined) this.#since = this.redisNow();
  }

  /** As a call has it. */
  get text(): string {
    const lastBeat = this.redisNow() - Math.floor(BEAT * this.leaseMillis);
    const until = this.#lostAt ?? Math.max(this.#since, lastBeat);
    return `${this.loadedAt}:${this.#since}:${until}`;
  }
}
