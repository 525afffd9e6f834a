import type { Redis } from 'ioredis';

import { withinDeadline } from '../common/deadline.js';
import type { BreakersParts } from './availability/breakers.js';

/** How old an answer may be. An operator who has changed the policy looks again. */
const MAX_AGE_MILLIS = 10_000;
const HARMLESS = 'noeviction';

/** Whether Redis may evict keys when it is full. An evicted key is a forgotten limit or a forgotten queue. */
export class EvictionWatch {
  #policy: string | undefined;
  #lookedAt = -Infinity;

  constructor(private readonly parts: Omit<BreakersParts, 'observer'>) {
    // After a failover another server may have another policy.
    parts.connections.onReady(() => void this.look());
  }

  /** The `maxmemory-policy` by which a primary may evict keys, as of the last look; undefined if none may. */
  get policy(): string | undefined {
    if (this.parts.clock.now() - this.#lookedAt > MAX_AGE_MILLIS) void this.look();
    return this.#policy;
  }

  /** Asks all primaries. The last answer stays if one does not answer, which others report. */
  async look(): Promise<void> {
    const { clock, connections, logger } = this.parts;
    this.#lookedAt = clock.now();
    const primaries = [...connections.primaries().values()];
    let policies: (string | undefined)[];
    try {
      policies = await Promise.all(primaries.map((primary) => this.#policyOf(primary)));
    } catch {
      return;
    }
    const policy = policies.find((each) => each !== undefined && each !== HARMLESS);
    if (policy === this.#policy) return;
    this.#policy = policy;
    if (policy === undefined) logger.info('Redis evicts no keys any more');
    else logger.warn({ policy }, 'Redis may evict keys, and limits with them; set noeviction');
  }

  /** Undefined if the server does not say. */
  async #policyOf(primary: Redis): Promise<string | undefined> {
    const text = await withinDeadline(primary.info('memory'), this.parts.timeoutMillis);
    return /^maxmemory_policy:(\S+)/m.exec(text)?.[1];
  }
}
