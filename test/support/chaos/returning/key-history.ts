import type { KeyNames } from '../../../../src/redis/shared/key-names.js';
import type { MonitoredCommand } from '../../monitor/server-monitor.js';

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
  | { readonly what: 'released' }
);

/** A script that has read or changed a key. */
export interface Run {
  readonly key: string;
  /** When it asked Redis for the time, by which it decides, in milliseconds since 1970. */
  readonly at: number;
  /** The start of the key's window after it, if the script has written it. */
  readonly windowStart?: number | undefined;
  readonly happenings: readonly Happening[];
}

/** An approval that is held. */
interface Held extends Hold {
  readonly isGrant: boolean;
}

/** What a script has changed of one request so far. */
interface Change {
  ticket?: number;
  waits?: boolean;
  isApproved?: boolean;
  isReleased?: boolean;
  hold?: Hold | 'ended';
  owner?: string;
}

/** The owner in a record, whose replica comes first. */
const OWNER = /([^:#]+)#\d+/;

/**
 * Follows the scripts' changes to the requests of one key, on a Redis that loses nothing, from before its first check on.
 * It knows what each script did only by its commands.
 */
export class KeyHistory {
  readonly #tickets = new Map<string, number>();
  readonly #held = new Map<string, Held>();
  readonly #owners = new Map<string, string>();
  #queueExpiresAt = Infinity;
  #changes = new Map<string, Change>();
  #windowStart: number | undefined;

  constructor(private readonly names: KeyNames) {}

  /** Follows a command of a script. */
  follow({ name, args: [key, ...args] }: MonitoredCommand): void {
    const { state, waiting, holds, requests, records, outcomes } = this.names;
    if (name === 'unlink') this.#onUnlink([key!, ...args]);
    else if (key === state && name === 'hset') this.#onState(args);
    else if (key === waiting) this.#onWaiting(name, args);
    else if (key === holds) this.#onHolds(name, args);
    else if (key === requests && name === 'sadd') {
      for (const id of args) this.#change(id).isApproved = true;
    } else if (key === records && name === 'hset') this.#onRecords(args);
    else if (key === outcomes[0] && name === 'hset') this.#onOutcomes(args);
  }

  /** What the commands since the last call have done, which were those of one script. */
  endOfScript(at: number): Run {
    const { key } = this.names;
    const happenings = [...this.#changes].flatMap(([id, change]) => this.#apply(id, change, at));
    const run = { key, at, windowStart: this.#windowStart, happenings };
    this.#changes = new Map();
    this.#windowStart = undefined;
    return run;
  }

  /** What has ended by itself: MONITOR does not show names that expire. */
  expired(at: number): Run | undefined {
    if (at < this.#queueExpiresAt || this.#tickets.size === 0) return undefined;
    const expiredAt = this.#queueExpiresAt;
    this.#queueExpiresAt = Infinity;
    const gone = [...this.#tickets.keys()];
    this.#tickets.clear();
    const happenings = gone.map((id) => ({ id, what: 'withdrawn' }) as const);
    return { key: this.names.key, at: expiredAt, happenings };
  }

  #change(id: string): Change {
    const change = this.#changes.get(id) ?? {};
    this.#changes.set(id, change);
    return change;
  }

  #onUnlink(names: readonly string[]): void {
    if (names.includes(this.names.waiting)) {
      for (const id of this.#idsThatWait()) this.#change(id).waits = false;
    }
    if (names.includes(this.names.holds)) {
      for (const id of this.#held.keys()) this.#change(id).hold = 'ended';
    }
  }

  #idsThatWait(): string[] {
    const joined = [...this.#changes].filter(([, { waits }]) => waits === true).map(([id]) => id);
    return [...this.#tickets.keys(), ...joined];
  }

  #onState(fields: readonly string[]): void {
    const index = fields.findIndex((field, i) => i % 2 === 0 && field === 'start');
    if (index !== -1) this.#windowStart = Number(fields[index + 1]);
  }

  #onWaiting(name: string, args: readonly string[]): void {
    if (name === 'hset') {
      for (const [id, value] of pairsOf(args)) {
        Object.assign(this.#change(id), { ticket: Number.parseInt(value, 10), waits: true });
      }
    } else if (name === 'hdel') for (const id of args) this.#change(id).waits = false;
    else if (name === 'pexpireat') this.#queueExpiresAt = Number(args[0]);
  }

  #onHolds(name: string, args: readonly string[]): void {
    if (name === 'hdel') for (const id of args) this.#change(id).hold = 'ended';
    if (name !== 'hset') return;
    for (const [id, value] of pairsOf(args)) {
      const [lapsesAt, millis] = value.split(/[:*]/).map(Number);
      this.#change(id).hold = { lapsesAt: lapsesAt!, millis: millis! };
    }
  }

  #onRecords(args: readonly string[]): void {
    for (const [id, record] of pairsOf(args)) this.#onOwner(id, record);
  }

  #onOutcomes(args: readonly string[]): void {
    for (const [id, record] of pairsOf(args)) {
      if (record.startsWith('released:')) this.#change(id).isReleased = true;
      else this.#onOwner(id, record);
    }
  }

  #onOwner(id: string, record: string): void {
    const [owner] = OWNER.exec(record) ?? [];
    if (owner !== undefined) this.#change(id).owner = owner;
  }

  #apply(id: string, change: Change, at: number): Happening[] {
    const happenings: Happening[] = [];
    const { ticket, waits, isApproved = false, isReleased = false, owner } = change;
    const hold = change.hold === 'ended' ? undefined : change.hold;
    const before = this.#held.get(id);
    const waited = this.#tickets.has(id);
    const joined = ticket !== undefined && !waited;
    if (change.hold === 'ended' || (joined && before)) this.#held.delete(id);
    if (before && change.hold === 'ended' && !isApproved) {
      const hasLapsed = at + 1 >= before.lapsesAt && !isReleased;
      happenings.push(
        hasLapsed
          ? { id, what: 'lapsed', hold: before, isGrant: before.isGrant }
          : { id, what: 'released' },
      );
    } else if (isReleased) happenings.push({ id, what: 'released' });
    if (joined) happenings.push({ id, what: 'joined', ticket });
    if (ticket !== undefined) this.#tickets.set(id, ticket);
    if (owner !== undefined && owner !== this.#owners.get(id)) {
      this.#owners.set(id, owner);
      happenings.push({ id, what: 'owned', replicaId: owner.replace(/#.*/, '') });
    }
    if (waits === false && this.#tickets.delete(id)) {
      happenings.push(this.#leave(id, hold, isApproved));
    } else if (before?.isGrant && (isApproved || hold)) {
      happenings.push({ id, what: 'confirmed', hold });
      if (hold) this.#held.set(id, { ...hold, isGrant: false });
    } else if (isApproved || (hold && !before)) {
      happenings.push({ id, what: 'approved', hold });
      if (hold) this.#held.set(id, { ...hold, isGrant: false });
    }
    return happenings;
  }

  #leave(id: string, hold: Hold | undefined, isApproved: boolean): Happening {
    if (!hold) return { id, what: isApproved ? 'served' : 'withdrawn' };
    this.#held.set(id, { ...hold, isGrant: true });
    return { id, what: 'granted', hold };
  }
}

function pairsOf(args: readonly string[]): (readonly [string, string])[] {
  return args.flatMap((value, i) => (i % 2 === 1 ? [[args[i - 1]!, value] as const] : []));
}
