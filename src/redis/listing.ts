import type { Redis } from 'ioredis';
import { z } from 'zod';

import { ListingForbiddenError } from '../limiter/errors.js';
import type { InstanceState } from '../limiter/limiter.js';
import { withinDeadline } from '../common/deadline.js';
import type { BreakersParts } from './availability/breakers.js';
import { toLimiterError } from './availability/store-errors.js';
import { groupBy } from '../common/collections.js';
import type { Connections } from './connections/connections.js';
import type { KeyNaming } from './shared/key-names.js';
import type { Scripts } from './scripts/scripts.js';

/** The number of names that one SCAN call examines. The keys among them are one page of a listing. */
const SCAN_COUNT = 100;
/** How long Redis may take for a whole listing. A million keys take it some seconds. */
const LONGEST_MILLIS = 10 * 60 * 1000;
/** What SCAN replies: a cursor, which is an unsigned number of 64 bits, and names. */
const scannedSchema = z.tuple([z.string().regex(/^\d{1,20}$/), z.array(z.string())]);
type Scanned = z.infer<typeof scannedSchema>;

/** Every limiter key in Redis, one primary after the other, in pages. */
export class Listing {
  constructor(
    private readonly scripts: Pick<Scripts, 'inspect'>,
    private readonly naming: KeyNaming,
    private readonly parts: Pick<BreakersParts, 'timeoutMillis' | 'logger'> & {
      readonly connections: Pick<Connections, 'primaries' | 'slotOf'>;
    },
    private readonly longestMillis = LONGEST_MILLIS,
  ) {}

  /** A page may be empty, so that the caller can stop a listing that finds no keys for long. */
  async *pages(): AsyncIterable<readonly InstanceState[]> {
    const primaries = this.parts.connections.primaries();
    if (primaries.size === 0) throw toLimiterError(new Error('no primary is known'));
    let millis = 0;
    // All begin before any goes on, so that a primary that is down fails the listing before its work.
    const begins = [...primaries.values()].map(
      async (primary) => [primary, await this.#scan(primary, '0')] as const,
    );
    for (const [primary, first] of await Promise.all(begins)) {
      const cursors = new Cursors();
      let scanned: Scanned | undefined = first;
      do {
        const begun = performance.now();
        const [next, names] = scanned ?? (await this.#scan(primary, cursors.current));
        scanned = undefined;
        cursors.next(next);
        const page = names.length > 0 ? await this.#inspectAll(names) : [];
        millis += performance.now() - begun;
        if (millis > this.longestMillis) throw endless(`${this.longestMillis} ms`);
        yield page;
      } while (cursors.current !== '0');
    }
  }

  async #inspectAll(states: readonly string[]): Promise<InstanceState[]> {
    const { connections } = this.parts;
    const calls = groupBy([...new Set(states)], (state) => connections.slotOf(state));
    const replies = await Promise.all(calls.map((call) => this.#inspect(call)));
    return replies.flat();
  }

  async #inspect(states: readonly string[]): Promise<InstanceState[]> {
    const keys = states.map((state) => this.naming.keyOf(state));
    const replies = await this.scripts.inspect(keys.map((key) => this.naming.namesOf(key)));
    return keys.flatMap((key, i) => {
      const reply = replies[i];
      if (!(reply instanceof Error)) return reply ? [{ key, ...reply }] : [];
      this.parts.logger.warn(
        { err: reply, key },
        'key not listed: its name in Redis holds something else',
      );
      return [];
    });
  }

  async #scan(primary: Redis, cursor: string): Promise<Scanned> {
    try {
      const reply: unknown = await withinDeadline(
        primary.scan(cursor, 'MATCH', this.naming.statePattern, 'COUNT', SCAN_COUNT),
        this.parts.timeoutMillis,
      );
      const { data } = scannedSchema.safeParse(reply);
      if (!data) throw new Error('invalid reply to SCAN');
      return data;
    } catch (error) {
      if (isForbidden(error)) throw new ListingForbiddenError({ cause: error });
      throw toLimiterError(error);
    }
  }
}

/**
 * The cursors of a SCAN. If one comes twice before the end, the SCAN would never end. To find any such cycle, one
 * cursor is kept and compared with the next one, another with the next two, then four, and so on.
 */
class Cursors {
  current = '0';
  #kept = '0';
  #compared = 0;
  #toCompare = 1;

  /** @throws Error that ends the listing */
  next(cursor: string): void {
    this.current = cursor;
    if (cursor === '0') return;
    if (cursor === this.#kept) throw endless(`a second cursor ${cursor}`);
    this.#compared += 1;
    if (this.#compared < this.#toCompare) return;
    this.#kept = cursor;
    this.#compared = 0;
    this.#toCompare *= 2;
  }
}

function endless(after: string): unknown {
  return toLimiterError(new Error(`SCAN has no end after ${after}`));
}

/** Whether the user's rules lack `+scan`, which shows the names of a whole database. */
function isForbidden(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOPERM');
}
