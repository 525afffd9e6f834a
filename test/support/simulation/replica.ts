import type { Redis } from 'ioredis';
import type { Logger } from 'pino';

import type { Clock } from '../../../src/common/clock.js';
import { BOUNDS } from '../../../src/limiter/bounds.js';
import type {
  Amended,
  Answer,
  Amendment,
  CheckRequest,
  Decision,
  RejectedAmendment,
  RejectedReport,
  Remaining,
  RemainingReport,
} from '../../../src/limiter/limiter.js';
import type { QueueList } from '../../../src/limiter/queue-order.js';
import { type CallerPresence, claimOf } from '../../../src/limiter/request.js';
import { BEAT, CONTACT_GAP } from '../../../src/redis/shared/losses.js';
import { CheckBatcher } from '../../../src/redis/checks/check-batcher.js';
import { type CheckReply, denial } from '../../../src/redis/checks/check-replies.js';
import { VERDICT } from '../../../src/redis/scripts/check-codec.js';
import { loadScript } from '../../../src/redis/scripts/script-loader.js';
import type { AskedOfKey, ScriptedOperation } from '../../../src/redis/scripts/operations.js';
import { Scripts } from '../../../src/redis/scripts/scripts.js';
import type { KeyNaming } from '../../../src/redis/shared/key-names.js';
import { LocalQueues } from '../../../src/redis/waiting/local-queues.js';
import type { WakeMessages } from '../../../src/redis/waiting/wake-channel.js';
import { type DeclaredLimits, keyLimits } from '../limits.js';
import { unobserved } from '../unguarded.js';
import { Connection } from './connection.js';
import { type LeaderLock, SimulatedMutex } from './leader-lock.js';
import { Mailbox } from './mailbox.js';
import type { Scripts as ScriptTexts } from './schedule.js';
import type { WorldShape } from './shape.js';

interface Timer {
  readonly dueAt: number;
  readonly callback: () => void;
}

/** A replica's clock, a little faster or slower than the world's clock. Its timers ring when they are told to. */
class DriftingClock implements Clock {
  readonly #timers = new Set<Timer>();

  /**
   * @param worldNow milliseconds since the world began
   * @param drift by how many thousandths it is faster
   */
  constructor(
    private readonly worldNow: () => number,
    private readonly drift: number,
  ) {}

  now(): number {
    return this.worldNow() * this.#rate;
  }

  after(delayMillis: number, callback: () => void): () => void {
    const timer = { dueAt: this.now() + Math.max(0, delayMillis), callback };
    this.#timers.add(timer);
    return () => {
      this.#timers.delete(timer);
    };
  }

  /** How long `millis` milliseconds of this clock take in the world. */
  worldMillis(millis: number): number {
    return millis / this.#rate;
  }

  get armed(): number {
    return this.#timers.size;
  }

  /** When the next timer is due, in whole milliseconds of the world; infinite where none is armed. */
  get nextDueAt(): number {
    return Math.ceil(this.worldMillis(this.#next?.dueAt ?? Infinity));
  }

  /** Rings the timer that is due longest. @returns whether there was one */
  ring(): boolean {
    const timer = this.#next;
    if (!timer || this.nextDueAt > this.worldNow()) return false;
    this.#timers.delete(timer);
    timer.callback();
    return true;
  }

  get #rate(): number {
    return 1 + this.drift / 1000;
  }

  get #next(): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) if (!next || timer.dueAt < next.dueAt) next = timer;
    return next;
  }
}

/** Short texts that a replica loads as its scripts, and the real scripts, which Redis gets. */
export interface StandIns {
  readonly texts: ScriptTexts;
  /** By text and by digest. */
  readonly real: ReadonlyMap<unknown, string>;
}

/** What a replica loads too, though no schedule calls it. */
const NEVER_CALLED = ['examine', 'holders', 'inspect', 'peek', 'report'];

const known = new WeakMap<ScriptTexts, StandIns>();

/** To put the real scripts together for each replica would take half of the time of a simulation. */
function standInsFor(scripts: ScriptTexts): StandIns {
  const before = known.get(scripts);
  if (before) return before;
  const texts = Object.fromEntries(
    [...Object.keys(scripts), ...NEVER_CALLED].map((name) => [name, `-- ${name}`]),
  );
  const real = new Map<unknown, string>();
  for (const name of Object.keys(scripts)) {
    const [from, to] = [loadScript(name, texts), loadScript(name, scripts)];
    real.set(from.text, to.text).set(from.sha1, to.sha1);
  }
  const standIns = { texts, real };
  known.set(scripts, standIns);
  return standIns;
}

/** The one limiter key of a world. */
export const KEY = 'k';

export interface ReplicaParts {
  readonly name: string;
  readonly index: number;
  readonly shape: WorldShape;
  readonly naming: KeyNaming;
  /** Texts of the scripts by their names. */
  readonly scripts: Readonly<Record<string, string>>;
  readonly now: () => number;
  /** The same by Redis's clock. */
  readonly redisNow: () => number;
  readonly lock: LeaderLock;
  readonly nextRequestId: () => string;
  /** Runs a command in Redis. */
  readonly execute: (
    replica: string,
    name: string,
    args: readonly (string | number)[],
  ) => Promise<unknown>;
  readonly publish: (text: string) => void;
}

/** EVALSHA or EVAL. */
interface ScriptCall {
  readonly name: string;
  /** First the text of the script or its digest. */
  readonly args: readonly [string, ...(string | number)[]];
}

/** The real waiting code of one replica, with everything around it in the hands of the world. */
export class SimulatedReplica {
  readonly name: string;
  readonly clock: DriftingClock;
  readonly connection: Connection;
  readonly mailbox: Mailbox;
  readonly room: LocalQueues;
  readonly history: KnownHistory;
  /** What its rules say of the key. */
  limits: DeclaredLimits;
  life: 'up' | 'frozen' | 'closing' | 'closed' | 'dead' = 'up';
  /** What happens to it when it stands still no more. */
  onceThawed: (() => void) | undefined;
  /** It has stopped and left withdrawals to the leases. */
  hasGivenUp = false;
  readonly #batcher: CheckBatcher;
  readonly #scripts: Scripts;
  #ticks: (() => void)[] = [];
  /** Of its last check whose caller has chosen the request id. */
  #claimNumber = 0;

  constructor(private readonly parts: ReplicaParts) {
    const { name, index, shape, naming, scripts, now, lock } = parts;
    this.name = name;
    const { windowMillis, maxRequests, maxRequestsInQueue, algorithm, further } = shape;
    this.limits = { windowMillis, maxRequests, maxRequestsInQueue, algorithm, further };
    this.clock = new DriftingClock(now, shape.drift[index] ?? 0);
    this.history = new KnownHistory(parts.redisNow, shape.leaseMillis);
    const knownTime = new KnownTime(parts.redisNow, this.clock, shape.leaseMillis);
    this.connection = new Connection(now, () => knownTime.now(this.history.isHeard));
    this.mailbox = new Mailbox(naming.namesOf(KEY).wakeChannel);
    const redis = this.#client();
    const atOnce = { next: (callback: () => void): void => callback() };
    const connections = {
      commands: redis,
      isCluster: false,
      slotOf: () => 0,
      shardOf: () => '',
      nodeAt: () => redis,
      primaries: () => new Map(),
    };
    const client = {
      connections,
      ticks: atOnce,
      clock: this.clock,
      logger: this.#logger(),
      onlyScripts: true,
    };
    this.#scripts = new Scripts(client, this.connection, {
      replicaId: name,
      leaseMillis: shape.leaseMillis,
      limitsOf: () => keyLimits(this.limits),
      wakeArgument: naming.wakeArgument({ isCluster: false }),
      maxIdsPerKey: 1_000_000,
      maxHoldsPerKey: 100,
      maxGroupsPerKey: shape.mostGroups,
      historyOf: () => this.history.text,
      timeOf: () => this.connection.knownTime,
      observer: unobserved,
      replacements: standInsFor(scripts).texts,
    });
    const ticks = { next: (callback: () => void) => void this.#ticks.push(callback) };
    this.#batcher = new CheckBatcher({
      scripts: this.#scripts,
      naming,
      observer: unobserved,
      ticks,
      clock: this.clock,
      shardOf: () => '',
      waitingFor: (key) => this.room.known(key),
    });
    this.room = new LocalQueues({
      replicaId: name,
      leaseMillis: shape.leaseMillis,
      limitsOf: () => keyLimits(this.limits),
      maxWaiters: Infinity,
      checks: this.#batcher,
      store: this.#scripts,
      messages: this.#messages(),
      createMutex: (_name, candidate) => new SimulatedMutex(candidate, lock, this.connection),
      naming,
      slotOf: () => 0,
      latestTime: () => parts.redisNow(),
      isAvailable: () => !this.connection.isBroken,
      observer: unobserved,
      clock: this.clock,
      ticks,
      random: () => index / 4,
      createRequestId: parts.nextRequestId,
      nextClaimNumber: () => this.#nextClaimNumber(),
      logger: this.#logger(),
    });
  }

  /** Whether it has not been killed. */
  get isAlive(): boolean {
    return this.life !== 'dead';
  }

  /** Whether anything happens in it now. One that has closed still reads the answers that it gets. */
  get isRunning(): boolean {
    return this.life !== 'frozen' && this.life !== 'dead';
  }

  get hasTicks(): boolean {
    return this.#ticks.length > 0;
  }

  /** The next tick of its event loop. */
  tick(): boolean {
    const ticks = this.#ticks.splice(0);
    for (const tick of ticks) tick();
    return ticks.length > 0;
  }

  checkOrWait(request: Omit<CheckRequest, 'key'>, caller: CallerPresence): Promise<Decision> {
    return this.room.checkOrWait({ key: KEY, ...request, list: this.#listOf(request) }, caller);
  }

  /** Its rules say whether its group has limits to itself. */
  #listOf({ list }: Pick<CheckRequest, 'list'>): QueueList | undefined {
    const hasLimits = this.limits.further?.some(({ perGroup }) => perGroup);
    return list?.kind === 'group' && hasLimits ? { ...list, hasLimits } : list;
  }

  /** What Redis calls the next check here whose caller has chosen the request id. */
  get nextOwner(): string {
    return `${this.name}#${this.#claimNumber + 1}`;
  }

  /** As RedisLimiter.check does for those that don't wait. */
  check(asked: Omit<CheckRequest, 'key'>, requestId: string): Promise<Decision> {
    const request = { ...asked, list: this.#listOf(asked) };
    const number = request.requestId === undefined ? undefined : this.#nextClaimNumber();
    const claim = claimOf(requestId, number) ?? requestId;
    return new Promise((resolve, reject) => {
      const onReply = (reply: CheckReply): void => {
        const decision: Decision | Error =
          reply.verdict === VERDICT.approved ? { outcome: 'approved', requestId } : denial(reply);
        if (decision instanceof Error) reject(decision);
        else resolve(decision);
      };
      const onFailed = (error: Error): void => {
        this.room.checkFailed({ key: KEY, ...request }, claim, error);
        reject(error);
      };
      this.#batcher.check({ key: KEY, ...request }, requestId, onReply, onFailed, number);
    });
  }

  #nextClaimNumber(): number {
    this.#claimNumber += 1;
    return this.#claimNumber;
  }

  /** Corrections have no bound here: the rules of a key that decide it are tested elsewhere. */
  amend(requestId: string, amendment: Amendment): Promise<Amended | RejectedAmendment | undefined> {
    const unbounded = { requestId, ...amendment, maxHits: BOUNDS.amendedHits.max };
    return this.#ask('amend', unbounded);
  }

  pause(millis: number, group: string | undefined): Promise<number> {
    return this.#ask('pause', { millis, group });
  }

  refund(hits: number): Promise<number> {
    return this.#ask('refund', { hits });
  }

  reportRemaining(report: RemainingReport): Promise<Remaining | RejectedReport> {
    return this.#ask('reportRemaining', report);
  }

  release(requestId: string): Promise<boolean> {
    return this.#ask('release', { requestId });
  }

  #ask<Name extends ScriptedOperation>(
    operation: Name,
    asked: AskedOfKey<Name>,
  ): Promise<Answer<Name>> {
    return this.#scripts.ask(operation, this.parts.naming.namesOf(KEY), asked);
  }

  /** Stops it as a deployment does. */
  close(): void {
    this.life = 'closing';
    void this.room.close().then(() => {
      if (this.life === 'closing') this.life = 'closed';
    });
  }

  #messages(): WakeMessages {
    return {
      subscriber: this.mailbox,
      publish: (_channel, text) =>
        this.connection.ask('publish', () => {
          this.parts.publish(text);
        }),
    };
  }

  /** What Scripts needs of a client of Redis. */
  #client(): Redis {
    const { execute, scripts } = this.parts;
    const { real } = standInsFor(scripts);
    const client = {
      sendCommand: ({ name, args: [script, ...args] }: ScriptCall) =>
        execute(this.name, name, [real.get(script) ?? script, ...args]),
    };
    return client as unknown as Redis;
  }

  #logger(): Logger {
    const ignore = (): void => undefined;
    const warn = (_fields: unknown, message: string): void => {
      if (message === 'withdrawals given up; places end with their leases') this.hasGivenUp = true;
    };
    return { debug: ignore, info: ignore, warn, error: ignore } as unknown as Logger;
  }
}

/**
 * Redis's time as a replica knows it, by which it says the windows of calendars: it asks regularly, and counts on by its
 * own clock. So what it knows is wrong for some time after Redis's clock has gone back, and by its clock's drift while
 * Redis is down.
 */
class KnownTime {
  /** What was heard last, and when by the replica's clock. */
  #heard: { readonly time: number; readonly at: number };

  constructor(
    private readonly redisNow: () => number,
    private readonly clock: DriftingClock,
    private readonly leaseMillis: number,
  ) {
    this.#heard = { time: redisNow(), at: clock.now() };
  }

  /** @param isHeard whether Redis answers this replica now */
  now(isHeard: boolean): number {
    const now = this.clock.now();
    if (isHeard && now - this.#heard.at >= BEAT * this.leaseMillis) {
      this.#heard = { time: this.redisNow(), at: now };
    }
    const { time, at } = this.#heard;
    return Math.floor(time + now - at);
  }
}

/**
 * What a replica knows of the time before its calls, without the timers by which the product learns it: it is heard as
 * long as Redis is there and the replica does not stand still. Times are by Redis's clock.
 */
class KnownHistory {
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
