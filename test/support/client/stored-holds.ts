import type { RedisForTests } from '../use-redis.js';
import { until } from '../until.js';

/** The holds in Redis. Times are ms since 1970, by Redis's clock. */
export class StoredHolds {
  constructor(private readonly redis: RedisForTests) {}

  /** When a hold lapses; undefined if there is none. */
  async lapsesAt(key: string, requestId: string): Promise<number | undefined> {
    const score = await this.redis.client.zscore(`sluice:{${key}}:lapses`, requestId);
    return score === null ? undefined : Number(score);
  }

  /** Resolves when renewals have put a hold's end off by `millis` milliseconds. Returns the new end. */
  async untilProlonged(key: string, requestId: string, millis: number): Promise<number> {
    const before = await this.lapsesAt(key, requestId);
    if (before === undefined) throw new Error('the approval is not held');
    return until(async () => {
      const now = await this.lapsesAt(key, requestId);
      return now !== undefined && now >= before + millis && now;
    });
  }
}
