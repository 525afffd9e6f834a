import { isDeepStrictEqual } from 'node:util';

import type { ForEachLimit, LimitInForce as Limit } from '../../../src/limiter/limits.js';
import { limitsIn } from '../../../src/redis/scripts/limits-codec.js';
import { limitsStoredIn } from '../stored-state.js';
import type { KeyNames } from '../../../src/redis/shared/key-names.js';
import { listId, readRecord, type StoredRecord } from '../stored-queue.js';
import type { MonitoredCommand } from './server-monitor.js';

/** An approval by a script, in Redis's own order. */
export interface ObservedApproval {
  readonly id: string;
  /** When the script asked Redis for the time, by which it decides, if it has. */
  readonly at: number;
  readonly isFromQueue: boolean;
}

type Limits = ForEachLimit<Limit>;

/** Limits that a script gave a key, from its caller. */
export interface ObservedLimits {
  readonly at: number;
  readonly limits: Limits;
  /** False if the key is made again with the limits that it had, or if it had these limits when the account began. */
  readonly areOther: boolean;
}

/** A waiter in a queue. */
interface Waiter {
  readonly id: string;
  readonly ticket: number;
  /** Its lane or group; '' for none. */
  readonly list: string;
}

/** The state of a key on a server. */
export interface Snapshot {
  readonly start: number | undefined;
  readonly limits: Limits | undefined;
  /** When a script gave the key these limits, in ms since 1970. */
  readonly limitsSince?: number;
  readonly approved: readonly string[];
  /** Approvals that are held. */
  readonly held?: readonly string[];
  /** Remembered approvals of windows that have ended. */
  readonly approvedBefore: readonly string[];
  readonly queue: readonly Waiter[];
  /** When Redis removes the queue by itself; negative if it does not. */
  readonly queueExpiresAt: number;
}

export interface KeyAccountEvents {
  onApproved(approval: ObservedApproval): void;
  /** A request took a place in the queue, for the first time on this server. */
  onJoined(id: string, ticket: number, list: string): void;
  /** A script has changed the limits of the key, or has made it again, perhaps before the state was known. */
  onLimits(limits: ObservedLimits): void;
  onViolation(violation: string): void;
}

/** Bounds for every key, whatever its rules are. */
export interface KeyAccountBounds {
  /** The highest maximum that a key may ever have. */
  readonly highestMaximum: number;
  /** The shortest time for which an approval is remembered, by the own limit of the key, if it is known. */
  readonly rememberedMillis: (own: Limit | undefined) => number;
}

interface ApprovalUnderWay {
  readonly id: string;
  readonly at: number;
  readonly isHeld: boolean;
}

/** Commands that change a key. */
const WRITES = new Set([
  ...['sadd', 'srem', 'rename', 'rpush', 'ltrim', 'sort', 'hset', 'hdel', 'unlink', 'del'],
  ...['restore', 'restore-asking', 'zadd', 'zrem', 'zremrangebyscore'],
]);

/**
 * Follows the scripts' changes to one limiter key on one server, and checks the limiter's invariants.
 * It judges while it knows the state on the server: from a snapshot on, until a client other than the
 * scripts changes the key, such as a primary or a migration.
 */
export class KeyAccount {
  #isKnown = false;
  /** The first millisecond of the window by Redis's time, since 1970, once it is known. */
  #windowStart: number | undefined;
  /** The limits in force on this server, if they are known. */
  #limits: Limits | undefined;
  /** Approvals that are held, in whatever window they were given. */
  #held = new Set<string>();
  /** Approvals of this window that have not been released. */
  #approved = new Set<string>();
  /**
   * When each request was approved, and for how long that must be remembered: a second approval before that is a violation.
   */
  readonly #remembered = new Map<string, { readonly at: number; readonly millis: number }>();
  #queue: Waiter[] = [];
  #queueExpiresAt = Infinity;
  /** The approvals of the script under way, and the waiters before it began. */
  #script:
    | {
        /** When it asked for the time. */
        at: number | undefined;
        readonly approved: ApprovalUnderWay[];
        readonly queued: Set<string>;
        readonly joined: (Waiter & { readonly isPutBack: boolean })[];
        /** Waiters that it added to a queue with several lists. */
        readonly listed: Set<string>;
      }
    | undefined;
  #lastTicket = 0;
  #putsBack = false;
  /** All who have had a place. */
  readonly #waiters = new Map<string, Waiter>();

  constructor(
    readonly names: KeyNames,
    private readonly bounds: KeyAccountBounds,
    private readonly events: KeyAccountEvents,
  ) {}

  /** How many approvals of this window have not been released. */
  get inWindow(): number {
    return this.#approved.size;
  }

  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** The state on the server is no longer known. Approvals of a script under way are still reported. */
  doubt(): void {
    this.#tellApproved();
    this.#isKnown = false;
    this.#limits = undefined;
    this.#windowStart = undefined;
    this.#held.clear();
    this.#script = undefined;
    this.#remembered.clear();
  }

  /** Adopts the state on the server at this point of its commands. */
  adopt(snapshot: Snapshot): void {
    const { start, limits, limitsSince, approved, approvedBefore, queue } = snapshot;
    const { queueExpiresAt, held = [] } = snapshot;
    this.#isKnown = true;
    this.#limits = limits;
    if (limits && limitsSince !== undefined) {
      this.events.onLimits({ at: limitsSince, limits, areOther: false });
    }
    this.#held = new Set(held);
    this.#windowStart ??= start;
    this.#approved = new Set(approved);
    // The age of approvals of earlier windows is unknown.
    for (const id of approvedBefore) this.#remembered.delete(id);
    for (const id of approved) this.#remember(id, Date.now());
    this.#queue = [...queue];
    this.#queueExpiresAt = queueExpiresAt < 0 ? Infinity : queueExpiresAt;
    this.#lastTicket = Math.max(0, ...queue.map(({ ticket }) => ticket));
    this.#waiters.clear();
    for (const waiter of queue) this.#waiters.set(waiter.id, waiter);
    // A lowered maximum does not remove approvals from the window.
    this.#expectRoom('in a snapshot', this.bounds.highestMaximum);
  }

  isChangedBy({ name, args }: MonitoredCommand): boolean {
    const { state, requests, queue, records, lapses } = this.names;
    const names = [state, requests, queue, records, lapses];
    return WRITES.has(name) && args.some((arg) => names.includes(arg));
  }

  /** Follows a command of a script. The commands of a script come together. */
  follow(command: MonitoredCommand): void {
    const { at, name, args } = command;
    const [key, ...rest] = args;
    // MONITOR does not show names that expire, for example on a primary that hung.
    if (at >= this.#queueExpiresAt) this.#forgetQueue();
    this.#script ??= {
      at: undefined,
      approved: [],
      queued: new Set(this.#queue.map(({ id }) => id)),
      joined: [],
      listed: new Set(),
    };
    if (name === 'time') this.#script.at ??= at;
    else if (name === 'unlink') this.#onUnlink(args);
    else if (key === this.names.state && name === 'hset')
      this.#onState(rest, this.#script.at ?? at);
    else if (key === this.names.lapses && name === 'zrem') this.#onNotHeld(rest);
    else if (key === this.names.requests) this.#onRequests(name, rest, at);
    else if (key === this.names.records) this.#onRecords(name, rest, at);
    else if (key === this.names.queue) this.#onQueue(name, rest);
  }

  /** The script of the last commands has ended: judges its result as a whole. */
  endOfScript(): void {
    const { approved = [], queued, listed } = this.#script ?? {};
    this.#judgeTickets();
    this.#tellApproved();
    this.#script = undefined;
    this.#putsBack = false;
    if (approved.length === 0 || !queued || !listed) return;
    const stillWaiting = this.#queue.filter(({ id }) => queued.has(id));
    // In which lane or group an approval at once is, only its caller knows.
    const hasLists = stillWaiting.some(({ list }) => /^(lane|group):/.test(list));
    for (const { id, at } of approved) {
      const isFromQueue = queued.has(id) || listed.has(id);
      const { ticket, list } = this.#waiters.get(id) ?? { ticket: Infinity, list: '' };
      const overtaken = stillWaiting.filter((waiter) =>
        isFromQueue ? waiter.list === list && waiter.ticket < ticket : !hasLists,
      );
      if (this.#isKnown && overtaken.length > 0) {
        this.#violates(
          isFromQueue
            ? `approved ${id} before ${overtaken.length} who had come earlier`
            : `approved ${id} at once while ${overtaken.length} waited`,
          at,
        );
      }
    }
    const when = `with ${approved.map(({ id }) => id).join()}`;
    const maximum = this.#limits?.[0].maximum ?? Infinity;
    this.#expectRoom(when, Math.min(maximum, this.bounds.highestMaximum), approved[0]?.at);
  }

  /** Only put-backs have lower tickets. In a queue with several lists, they can't be told from others. */
  #judgeTickets(): void {
    const { joined = [], listed } = this.#script ?? {};
    for (const { id, ticket, isPutBack } of joined) {
      const isOrdered = isPutBack || listed?.has(id) === true || ticket > this.#lastTicket;
      if (this.#isKnown && !isOrdered) {
        this.#violates(`${id} was given ticket ${ticket} after ${this.#lastTicket}`);
      }
      this.#lastTicket = Math.max(this.#lastTicket, ticket);
    }
  }

  #tellApproved(): void {
    const { approved = [], queued, listed, at: scriptAt } = this.#script ?? {};
    for (const { id, at } of approved) {
      const isFromQueue = queued?.has(id) === true || listed?.has(id) === true;
      this.events.onApproved({ id, at: scriptAt ?? at, isFromQueue });
    }
  }

  #onUnlink(keys: readonly string[]): void {
    if (keys.includes(this.names.requests)) this.#approved.clear();
    const areGone = keys.includes(this.names.records);
    if (areGone || keys.includes(this.names.lapses)) this.#held.clear();
    if (areGone) this.#forgetQueue();
  }

  #forgetQueue(): void {
    this.#queue = [];
    this.#queueExpiresAt = Infinity;
    this.#lastTicket = 0;
  }

  #onState(fields: readonly string[], at: number): void {
    const value = (field: string): string | undefined => {
      const position = fields.indexOf(field);
      return position === -1 ? undefined : fields[position + 1];
    };
    const [limits, start] = [value('limits'), value('start')];
    if (limits !== undefined) {
      this.#onLimits(limitsOf(limits), at, value('born') !== undefined);
    }
    if (start === undefined || this.#windowStart === Number(start)) return;
    if (this.#windowStart !== undefined) this.#beginWindow();
    this.#windowStart = Number(start);
  }

  /** The approvals of the script under way belong to the window that it begins. */
  #beginWindow(): void {
    this.#windowStart = undefined;
    const { approved = [] } = this.#script ?? {};
    this.#approved = new Set(approved.filter(({ isHeld }) => !isHeld).map(({ id }) => id));
  }

  #onLimits(limits: Limits, at: number, isNewKey: boolean): void {
    const areOther = !isDeepStrictEqual(this.#limits, limits);
    this.#limits = limits;
    if (areOther) this.#rememberAtMost(this.bounds.rememberedMillis(limits[0]));
    // The limits from before the state was known may be outdated.
    if ((areOther || isNewKey) && this.#isKnown) this.events.onLimits({ at, limits, areOther });
  }

  #onRequests(name: string, ids: readonly string[], at: number): void {
    // A script sends this command only when it creates a key.
    if (name === 'exists') this.#beginWindow();
    // The window has ended.
    if (name === 'rename') this.#approved.clear();
    if (name === 'srem') for (const id of ids) this.#approved.delete(id);
    if (name === 'sadd') {
      for (const id of ids) {
        if (this.#isKnown && this.#isRemembered(id, at)) this.#violates(`approved ${id} twice`, at);
        this.#approved.add(id);
        this.#remember(id, at);
        this.#script?.approved.push({ id, at, isHeld: false });
      }
    }
  }

  #onRecords(name: string, args: readonly string[], at: number): void {
    if (name === 'hdel') {
      this.#onNotHeld(args);
      this.#onNotWaiting(args);
    }
    if (name !== 'hset') return;
    for (let i = 0; i < args.length; i += 2) this.#onRecord(args[i]!, readRecord(args[i + 1]!), at);
  }

  #onRecord(id: string, record: StoredRecord, at: number): void {
    if (record.state === 'waiting') this.#onWaiting(waiterIn(id, record));
    else this.#onNotWaiting([id]);
    if (!isHeld(record)) {
      this.#onNotHeld([id]);
    } else if (!this.#held.has(id)) {
      this.#held.add(id);
      this.#script?.approved.push({ id, at, isHeld: true });
    }
  }

  #onNotHeld(ids: readonly string[]): void {
    for (const id of ids) this.#held.delete(id);
  }

  #onNotWaiting(ids: readonly string[]): void {
    this.#queue = this.#queue.filter(({ id }) => !ids.includes(id));
  }

  #onWaiting(waiter: Waiter): void {
    const { id, ticket } = waiter;
    // A later check has taken the place over.
    if (this.#queue.some((other) => other.id === id && other.ticket === ticket)) return;
    this.#onJoined(waiter);
  }

  #onQueue(name: string, args: readonly string[]): void {
    if (name === 'zadd') this.#onListed(args);
    if (name === 'pexpireat') this.#queueExpiresAt = Number(args[0]);
    // A script sends this command only right before it puts waiters back.
    if (name === 'lindex' && args[0] === '-1') this.#putsBack = true;
  }

  /** @param args scores and entries by turns */
  #onListed(args: readonly string[]): void {
    for (let i = 1; i < args.length; i += 2) this.#script?.listed.add(idOfEntry(args[i]!));
  }

  #onJoined(waiter: Waiter): void {
    const { id, ticket, list } = waiter;
    const known = this.#waiters.get(id);
    if (known === undefined) {
      this.#waiters.set(id, waiter);
      this.events.onJoined(id, ticket, list);
    }
    if (this.#isKnown && known !== undefined && known.ticket !== ticket) {
      this.#violates(`${id} was put back with ticket ${ticket} and not ${known.ticket}`);
    }
    this.#script?.joined.push({ ...waiter, isPutBack: this.#putsBack });
    if (this.#queue.some((other) => other.id === id)) return;
    if (this.#putsBack) this.#script?.queued.add(id);
    this.#queue.push(waiter);
    this.#queue.sort((one, other) => one.ticket - other.ticket);
  }

  #remember(id: string, at: number): void {
    this.#remembered.set(id, { at, millis: this.bounds.rememberedMillis(this.#limits?.[0]) });
  }

  #isRemembered(id: string, now: number): boolean {
    const { at, millis } = this.#remembered.get(id) ?? { at: now, millis: 0 };
    return now < at + millis;
  }

  /** After a change of limits, the shorter of the times counts. */
  #rememberAtMost(most: number): void {
    for (const [id, { at, millis }] of this.#remembered) {
      if (millis > most) this.#remembered.set(id, { at, millis: most });
    }
  }

  /** Only the windows of a limit with fixed windows end what counts. */
  #expectRoom(when: string, maximum: number, at?: number): void {
    const size = this.#approved.size + this.#held.size;
    const isFixed = this.#limits?.[0].algorithm.name === 'fixed_window';
    if (!this.#isKnown || !isFixed || size <= maximum) return;
    this.#violates(`${size} approved in one window, and not ${maximum}, ${when}`, at);
  }

  #violates(violation: string, at?: number): void {
    const time = at === undefined ? '' : ` at ${at.toFixed(3)}`;
    this.events.onViolation(`${this.names.state}: ${violation}${time}`);
  }
}

/** Reads the state of a key on a server. The last argument is a mark that shows the time in MONITOR. */
export const SNAPSHOT_SCRIPT = `
return {
  redis.call('HGET', KEYS[1], 'start') or '',
  redis.call('SMEMBERS', KEYS[2]),
  redis.call('HGETALL', KEYS[4]),
  redis.call('PEXPIRETIME', KEYS[3]),
  redis.call('SUNION', unpack(KEYS, 5)),
  redis.call('HGET', KEYS[1], 'limits') or '',
  redis.call('HGET', KEYS[1], 'born') or '',
  redis.call('HGET', KEYS[1], 'changed') or '',
}`;

/** The KEYS of {@link SNAPSHOT_SCRIPT}. */
export function keysOfSnapshot(names: KeyNames): string[] {
  const { state, requests, queue, records, pastRequests } = names;
  return [state, requests, queue, records, ...pastRequests];
}

export function parseSnapshot(reply: unknown): Snapshot {
  const [start, approved, texts, queueExpiresAt, approvedBefore, limits, born, changed] = reply as [
    ...[string, string[], string[], number, string[], string],
    ...[born: string, changed: string],
  ];
  const records = texts.flatMap((id, i) =>
    i % 2 === 0 ? [[id, readRecord(texts[i + 1]!)] as const] : [],
  );
  const waiting = records.filter(([, { state }]) => state === 'waiting');
  return {
    start: start === '' ? undefined : Number(start),
    limits: limits === '' ? undefined : limitsOf(limits),
    // A lost key that is made again has limits that came into force before.
    limitsSince: Math.max(Number(born), Number(changed)),
    approved,
    held: records.filter(([, record]) => isHeld(record)).map(([id]) => id),
    approvedBefore,
    queue: waiting.map(([id, record]) => waiterIn(id, record)).sort((a, b) => a.ticket - b.ticket),
    queueExpiresAt,
  };
}

/** Those that each group has to itself come last. @param field of the state */
function limitsOf(field: string): Limits {
  const { limits, limitsOfGroups } = limitsIn(limitsStoredIn(field));
  return [...limits, ...limitsOfGroups];
}

function isHeld({ state }: StoredRecord): boolean {
  return state === 'held' || state === 'unclaimed';
}

function waiterIn(id: string, { ticket, list }: StoredRecord): Waiter {
  return { id, ticket: Number(ticket), list: list ? listId(list) : '' };
}

/** @param entry of a queue with several lists: see lua/queue/entries.lua */
function idOfEntry(entry: string): string {
  return /^\S+ \d+:([^@]*)/.exec(entry)![1]!;
}
