import type { KeyNames } from '../../../../src/redis/shared/key-names.js';
import type { MonitoredCommand } from '../../monitor/server-monitor.js';
import { readRecord, type StoredRecord } from '../../stored-queue.js';

/** How long an approval is held. */
export interface Hold {
  /** When it lapses, in milliseconds since 1970. */
  readonly lapsesAt: number;
  readonly millis: number;
}

/** What a script did for a request. */
export type Happening = { readonly id: string } & (
  | { readonly what: 'joined'; readonly ticket: number }
  /** A check has become the owner of a request that waits or is approved. */
  | { readonly what: 'owned'; readonly replicaId: string }
  /** It left the queue without an approval. */
  | { readonly what: 'withdrawn' }
  /** It was approved from the queue, held until it is confirmed. */
  | { readonly what: 'granted'; readonly hold: Hold }
  /** It was approved from the queue, for good. */
  | { readonly what: 'served' }
  /** It was approved without a wait. */
  | { readonly what: 'approved'; readonly hold?: Hold | undefined }
  /** Its grant became what was asked for. */
  | { readonly what: 'confirmed'; readonly hold?: Hold | undefined }
  | { readonly what: 'lapsed'; readonly hold: Hold; readonly isGrant: boolean }
  /** An approval or a grant ended before its time. */
  | { readonly what: 'ended' }
);

/** A script that has read or changed a key. */
export interface Run {
  readonly key: string;
  /** When it asked Redis for the time, by which it decides, in milliseconds since 1970. */
  readonly at: number;
  readonly happenings: readonly Happening[];
}

/** An approval that is held. */
interface Held extends Hold {
  readonly isGrant: boolean;
}

/**
 * Follows the scripts' changes to the requests of one key, on a Redis that loses nothing, from before its first check on.
 * It knows what each script did only by its commands.
 */
export class KeyHistory {
  readonly #tickets = new Map<string, number>();
  readonly #held = new Map<string, Held>();
  /** When approvals lapse, by their ids. */
  readonly #lapses = new Map<string, number>();
  /** Approvals that are not held, from all windows. */
  readonly #plain = new Set<string>();
  readonly #owners = new Map<string, string>();
  #queueExpiresAt = Infinity;
  #happenings: Happening[] = [];
  /** Waiters that the script under way has approved. */
  #leaving = new Set<string>();

  constructor(private readonly names: KeyNames) {}

  /**
   * Follows a command of a script.
   * @param at when the script asked for the time
   */
  follow({ name, args: [key = '', ...args] }: MonitoredCommand, at: number): void {
    const { queue, lapses, requests, records } = this.names;
    if (name === 'unlink') this.#onUnlink([key, ...args], at);
    else if (key === queue && name === 'pexpireat') this.#queueExpiresAt = Number(args[0]);
    else if (key === lapses) this.#onLapses(name, args, at);
    else if (key === requests) this.#onRequests(name, args);
    else if (key === records) this.#onRecords(name, args, at);
  }

  /** What the commands since the last call have done, which were those of one script. */
  endOfScript(at: number): Run {
    const run = { key: this.names.key, at, happenings: this.#happenings };
    this.#happenings = [];
    this.#leaving = new Set();
    return run;
  }

  /** What has ended by itself: MONITOR does not show names that expire. */
  expired(at: number): Run | undefined {
    if (at < this.#queueExpiresAt || this.#tickets.size === 0) return undefined;
    const expiredAt = this.#queueExpiresAt;
    this.#queueExpiresAt = Infinity;
    for (const id of [...this.#tickets.keys()]) this.#leave(id);
    return this.endOfScript(expiredAt);
  }

  #onUnlink(names: readonly string[], at: number): void {
    const areGone = names.includes(this.names.records);
    if (areGone) for (const id of [...this.#tickets.keys()]) this.#leave(id);
    if (areGone || names.includes(this.names.lapses)) {
      for (const id of [...this.#held.keys()]) this.#endHold(id, at);
    }
  }

  /** A script says when an approval lapses before it writes its record. */
  #onLapses(name: string, args: readonly string[], at: number): void {
    if (name === 'zrem') for (const id of args) this.#endHold(id, at);
    if (name !== 'zadd') return;
    const isNew = args[0] === 'NX';
    for (const [lapsesAt, id] of pairsOf(isNew ? args.slice(1) : args)) {
      if (!(isNew && this.#held.has(id))) this.#lapses.set(id, Number(lapsesAt));
    }
  }

  #onRequests(name: string, ids: readonly string[]): void {
    if (name === 'sadd') for (const id of ids) this.#approve(id);
    if (name !== 'srem') return;
    for (const id of ids) {
      if (this.#plain.delete(id)) this.#happenings.push({ id, what: 'ended' });
    }
  }

  #onRecords(name: string, args: readonly string[], at: number): void {
    if (name === 'hset') {
      for (const [id, text] of pairsOf(args)) this.#onRecord(id, readRecord(text), at);
    }
    if (name !== 'hdel') return;
    for (const id of args) {
      this.#endHold(id, at);
      this.#leave(id);
    }
  }

  #onRecord(id: string, record: StoredRecord, at: number): void {
    const { state, ticket, owner } = record;
    if (state === 'waiting') this.#join(id, Number(ticket));
    else if (state === 'held' || state === 'unclaimed') this.#onHeld(id, record);
    else this.#endHold(id, at);
    if (state !== 'waiting') this.#leave(id);
    const isReleased = state === 'released';
    if (isReleased && this.#plain.delete(id)) this.#happenings.push({ id, what: 'ended' });
    if (owner === undefined || owner === this.#owners.get(id)) return;
    this.#owners.set(id, owner);
    this.#happenings.push({ id, what: 'owned', replicaId: owner.replace(/#.*/, '') });
  }

  #onHeld(id: string, { state, keepMillis, renewedMillis, holdMillis }: StoredRecord): void {
    const isUnclaimed = state === 'unclaimed';
    // A later check has become the owner.
    if (isUnclaimed && this.#held.has(id)) return;
    const millis = (isUnclaimed ? keepMillis : (renewedMillis ?? holdMillis))!;
    this.#approve(id, { lapsesAt: this.#lapses.get(id) ?? NaN, millis });
  }

  #join(id: string, ticket: number): void {
    if (!this.#tickets.has(id)) this.#happenings.push({ id, what: 'joined', ticket });
    this.#tickets.set(id, ticket);
  }

  #leave(id: string): void {
    if (!this.#tickets.delete(id) || this.#leaving.delete(id)) return;
    this.#happenings.push({ id, what: 'withdrawn' });
  }

  /** Scripts approve waiters before they take them out of the queue. */
  #approve(id: string, hold?: Hold): void {
    const held = this.#held.get(id);
    if (held && !held.isGrant) return;
    const isGrant = held === undefined && this.#tickets.has(id);
    this.#held.delete(id);
    if (hold) this.#held.set(id, { ...hold, isGrant });
    else this.#plain.add(id);
    if (isGrant) this.#leaving.add(id);
    if (held) this.#happenings.push({ id, what: 'confirmed', hold });
    else if (!isGrant) this.#happenings.push({ id, what: 'approved', hold });
    else this.#happenings.push(hold ? { id, what: 'granted', hold } : { id, what: 'served' });
  }

  #endHold(id: string, at: number): void {
    const held = this.#held.get(id);
    this.#lapses.delete(id);
    if (!held) return;
    this.#held.delete(id);
    const { isGrant } = held;
    const isOver = at >= held.lapsesAt;
    this.#happenings.push(
      isOver ? { id, what: 'lapsed', hold: held, isGrant } : { id, what: 'ended' },
    );
  }
}

function pairsOf(args: readonly string[]): (readonly [string, string])[] {
  return args.flatMap((value, i) => (i % 2 === 1 ? [[args[i - 1]!, value] as const] : []));
}
