import type { Redis } from 'ioredis';
import type { Logger } from 'pino';

import { ListingForbiddenError } from '../limiter/errors.js';
import type { InstanceState } from '../limiter/limiter.js';
import { withinDeadline } from './availability/deadline.js';
import { toLimiterError } from './availability/store-errors.js';
import { groupBySlot } from './by-slot.js';
import type { Connections } from './connections/connections.js';
import type { KeyNaming } from './key-names.js';
import type { Scripts } from './scripts/scripts.js';

/** The number of names that one SCAN call looks at. Its keys are one page of a listing. */
const SCAN_COUNT = 100;

interface ListingParts {
  readonly connections: Pick<Connections, 'primaries' | 'slotOf'>;
  readonly timeoutMillis: number;
  readonly logger: Logger;
}

/** Every limiter key in Redis, one primary after the other, in pages. */
export class Listing {
  constructor(
    private readonly scripts: Pick<Scripts, 'inspect'>,
    private readonly naming: KeyNaming,
    private readonly parts: ListingParts,
  ) {}

  async *pages(): AsyncIterable<readonly InstanceState[]> {
    const primaries = this.parts.connections.primaries();
    if (primaries.size === 0) throw toLimiterError(new Error('no primary is known'));
    for (const primary of primaries.values()) {
      let cursor = '0';
      do {
        const [next, names] = await this.#scan(primary, cursor);
        cursor = next;
        if (names.length > 0) yield await this.#inspectAll(names);
      } while (cursor !== '0');
    }
  }

  async #inspectAll(states: readonly string[]): Promise<InstanceState[]> {
    const { connections } = this.parts;
    const calls = groupBySlot([...new Set(states)], (state) => connections.slotOf(state));
    const replies = await Promise.all(calls.map((call) => this.#inspect(call)));
    return replies.flat();
  }

  async #inspect(states: readonly string[]): Promise<InstanceState[]> {
    const keys = states.map((state) => this.naming.keyOf(state));
    const replies = await this.scripts.inspect(keys.map((key) => this.naming.namesOf(key)));
    return keys.flatMap((key, i) => {
      const reply = replies[i];
      if (!(reply instanceof Error)) return reply ? [{ key, ...reply }] : [];
      this.parts.logger.warn({ err: reply, key }, 'not listed; this name in Redis is not ours');
      return [];
    });
  }

  async #scan(primary: Redis, cursor: string): Promise<[cursor: string, names: string[]]> {
    try {
      return await withinDeadline(
        primary.scan(cursor, 'MATCH', this.naming.statePattern, 'COUNT', SCAN_COUNT),
        this.parts.timeoutMillis,
      );
    } catch (error) {
      if (isForbidden(error)) throw new ListingForbiddenError({ cause: error });
      throw toLimiterError(error);
    }
  }
}

/** Whether the user's rules lack `+scan`, which shows the names of a whole database. */
function isForbidden(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOPERM');
}
