import type { RedisProcess } from '../../redis-process.js';
import { waitersIn } from '../../stored-waiters.js';

/** What Redis has of a limiter key in its window. */
export interface StoredKey {
  /** Of the approvals. */
  readonly ids: readonly string[];
  /** How many approvals it counts. */
  readonly approved: number;
  /** How many places of its queue are taken. */
  readonly waiting: number;
}

const NAMES = 'sluice:{*}';
const NAME = /^sluice:\{(.+)\}$/;
const KEYS_PER_PIPELINE = 2000;

/** All limiter keys of some servers, read by nobody's help but Redis's. */
export async function storedKeys(
  primaries: readonly RedisProcess[],
): Promise<Map<string, StoredKey>> {
  const all = await Promise.all(primaries.map(keysOn));
  return new Map(all.flat());
}

async function keysOn(server: RedisProcess): Promise<(readonly [string, StoredKey])[]> {
  const client = server.connect();
  try {
    const names = await client.keys(NAMES);
    const stored: (readonly [string, StoredKey])[] = [];
    for (let first = 0; first < names.length; first += KEYS_PER_PIPELINE) {
      const some = names.slice(first, first + KEYS_PER_PIPELINE);
      const pipeline = client.pipeline();
      for (const name of some) {
        pipeline.smembers(`${name}:requests`).hget(name, 'approved').hvals(`${name}:records`);
      }
      const replies = (await pipeline.exec())!.map(([error, reply]) => {
        if (error) throw error;
        return reply;
      });
      for (const [i, name] of some.entries()) {
        const [ids, approved, records] = replies.slice(3 * i) as [string[], string, string[]];
        const waiting = waitersIn(records);
        stored.push([NAME.exec(name)![1]!, { ids, approved: Number(approved), waiting }]);
      }
    }
    return stored;
  } finally {
    client.disconnect();
  }
}
