import type { Redis } from 'ioredis';

import type { Clock } from '../common/clock.js';
import { UnderWay } from '../common/under-way.js';
import type { Connections } from './connections/connections.js';
import { BEAT, CONTACT_GAP } from './shared/losses.js';

/** The history of a caller that knows nothing yet. */
export const UNKNOWN_HISTORY = '0:0:0';

export interface CallerHistoryParts {
  readonly connections: Pick<Connections, 'primaries' | 'shardOf' | 'onReady'>;
  readonly clock: Clock;
  /** When the rules that are in use were loaded, by the clock. */
  readonly rulesLoadedAt: () => number;
  readonly leaseMillis: number;
  /** The time of a server, in milliseconds since 1970. Default: the answer of TIME. Tests control it. */
  readonly readTime?: ((server: Redis) => Promise<number>) | undefined;
}

/**
 * What this replica knows of the time before its calls, for `lua/lib/recovery.lua`: when it loaded its rules, and
 * whether Redis was up while other replicas were silent. It regularly asks each shard for its time, also while it has
 * nothing else to ask.
 */
export class CallerHistory {
  readonly #contacts = new Map<string, Contact>();
  readonly #asking = new UnderWay<void>();
  #cancelTimer: (() => void) | undefined;

  constructor(private readonly parts: CallerHistoryParts) {
    parts.connections.onReady(() => this.#askAll());
    this.#beat();
  }

  /** @param name a name in Redis that a call is about */
  of(name: string): string {
    const contact = this.#contacts.get(this.parts.connections.shardOf(name));
    return contact ? contact.history(this.parts.rulesLoadedAt()) : UNKNOWN_HISTORY;
  }

  /**
   * @param name a name in Redis
   * @returns the time of its shard, in milliseconds since 1970: never too early, and too late by the delay of an answer at
   *   most, as long as both clocks run evenly. Undefined if the shard has not said its time yet.
   */
  latestTime(name: string): number | undefined {
    const contact = this.#contacts.get(this.parts.connections.shardOf(name));
    return contact?.latestTime(this.parts.clock.now());
  }

  dispose(): void {
    this.#cancelTimer?.();
  }

  #beat(): void {
    this.#askAll();
    this.#cancelTimer = this.parts.clock.after(this.parts.leaseMillis * BEAT, () => this.#beat());
  }

  #askAll(): void {
    const servers = this.parts.connections.primaries();
    for (const [shard, server] of servers) {
      void this.#asking.join(shard, () => this.#ask(shard, server));
    }
    for (const shard of this.#contacts.keys())
      if (!servers.has(shard)) this.#contacts.delete(shard);
  }

  async #ask(shard: string, server: Redis): Promise<void> {
    const { clock, leaseMillis, readTime = timeOf } = this.parts;
    const contact = this.#contacts.get(shard) ?? new Contact(leaseMillis * CONTACT_GAP);
    this.#contacts.set(shard, contact);
    const sentAt = clock.now();
    try {
      contact.heard(await readTime(server), sentAt);
    } catch {
      // The gap in the contact shows the missing answer.
    }
  }
}

/** From when to when a shard has answered, by its own clock. */
class Contact {
  #since = 0;
  #until = 0;
  /** By how much the shard's clock is ahead of this replica's. */
  #aheadMillis = 0;
  #rulesLoadedAt = NaN;
  #history = UNKNOWN_HISTORY;

  constructor(private readonly gapMillis: number) {}

  /** @param sentAt when it was asked for its time, by this replica's clock */
  heard(time: number, sentAt: number): void {
    if (time < this.#until || time - this.#until >= this.gapMillis) this.#since = time;
    this.#until = time;
    // Counted from the sending, so that rules loaded while the answer was on its way count as loaded after it, and
    // `latestTime` is never too early.
    this.#aheadMillis = time - sentAt;
    this.#rulesLoadedAt = NaN;
  }

  /** @param now by this replica's clock */
  latestTime(now: number): number | undefined {
    return this.#until === 0 ? undefined : now + this.#aheadMillis;
  }

  history(rulesLoadedAt: number): string {
    if (this.#until === 0) return UNKNOWN_HISTORY;
    if (rulesLoadedAt !== this.#rulesLoadedAt) {
      this.#rulesLoadedAt = rulesLoadedAt;
      const loaded = Math.max(0, Math.floor(rulesLoadedAt + this.#aheadMillis));
      this.#history = `${loaded}:${this.#since}:${this.#until}`;
    }
    return this.#history;
  }
}

async function timeOf(server: Redis): Promise<number> {
  const [seconds, micros] = await server.time();
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
}
