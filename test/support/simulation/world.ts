import { setImmediate as nextTurn } from 'node:timers/promises';

import type { Redis } from 'ioredis';

import { RequestIdConflictError } from '../../../src/limiter/errors.js';
import type { Amendment, RemainingReport } from '../../../src/limiter/limiter.js';
import { timeOfStaleCall } from '../../../src/redis/scripts/shared-arguments.js';
import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import type { DeclaredLimits } from '../limits.js';
import { withWindowsByRules } from './calendars.js';
import { type AskedTerms, SimulatedClient, SimulatedRequest } from './client.js';
import { Judge } from './judge.js';
import { isStillKept, noteKept } from './kept-places.js';
import { LeaderLock } from './leader-lock.js';
import {
  checkEverybodyIsTold,
  checkNobodyWaitsForNothing,
  checkRulesAreTaken,
  checkWaitsEnd,
  checkWindowsEnd,
  isQuiet,
  millisToNext,
  refusalFault,
} from './punctuality.js';
import { KEY, SimulatedReplica } from './replica.js';
import { RulesGiven } from './rules-given.js';
import { readRun } from './script-run.js';
import { DRIFT, REPLICA_NAMES, type WorldShape } from './shape.js';
import { OF_GROUPS, StoredKey } from './stored-key.js';
import { Violation } from './snapshot.js';

/**
 * When worlds begin, by Redis's clock: the year 2096, so that no key that a script lets expire at a controlled time
 * is removed by Redis's real clock; always the same, since leases are counted from 1970.
 */
const BEGINNING_MILLIS = 4_000_000_000_000;

/** The parts of a queue, each of which shows that another is not there. The records tell of other requests as well. */
export const QUEUE_PARTS = ['queue', 'records', 'replicas'] as const;

/** The keys that can be lost alone, by their numbers in KEYS. */
export const LOSSES: Readonly<Record<string, readonly number[]>> = {
  everything: Array.from({ length: OF_GROUPS.last }, (_, i) => i + 1),
  state: [1],
  requests: [2, 11, 12],
  queue: [3],
  records: [4],
  replicas: [5],
  past: [6, 7, 8],
  lapses: [9],
  ends: [10],
  limits: [13, 14, 15, 16, 17, 18],
  'state-and-records': [1, 4, 9, 10],
};

/** The heads of lists, which follow from the lists. */
export const LOSSES_OF_HEADS: Readonly<Record<string, readonly number[]>> = {
  'heads-of-lanes': [19],
  'heads-of-groups': [20, OF_GROUPS.stopped],
  heads: [19, 20, OF_GROUPS.stopped],
};

/** What groups have to themselves. */
export const LOSSES_OF_GROUPS: Readonly<Record<string, readonly number[]>> = {
  groups: [OF_GROUPS.all, OF_GROUPS.idle],
  'groups-alone': [OF_GROUPS.all],
  'idle-groups': [OF_GROUPS.idle],
};

/** Rules of the key. A length of windows, an algorithm, or further limits, that are left out stay as they are. */
export type NewRules = Omit<DeclaredLimits, 'windowMillis'> &
  Partial<Pick<DeclaredLimits, 'windowMillis'>>;

/** What a check asks for, and the limits that it sets. */
export interface CheckTerms extends AskedTerms {
  readonly maxRequests?: number;
  readonly maxRequestsInQueue?: number;
  readonly windowMillis?: number;
}

let worlds = 0;

/** Several replicas' real waiting code over the real scripts, in which nothing happens but by a step. */
export class World {
  readonly replicas: readonly SimulatedReplica[];
  /** All checks, by their names. */
  readonly clients = new Map<string, SimulatedClient>();
  /** By their ids. */
  readonly requests = new Map<string, SimulatedRequest>();
  readonly #ofOwners = new Map<string, SimulatedClient>();
  readonly rules = new RulesGiven();
  readonly lock: LeaderLock;
  readonly stored: StoredKey;
  /** Milliseconds since it began. */
  now = 0;
  isRedisAway = false;
  wasRedisAway = false;
  /** When Redis went away last. */
  awayAt = -Infinity;
  /** How often it went away again before all replicas were back. */
  timesAwayAgain = 0;
  /** By how much Redis's clock has gone back. */
  behindMillis = 0;
  /** How long Redis took to start again. */
  restartMillis = 0;
  /** When Redis came back last. */
  backAt = -Infinity;
  /** Replicas that stood still for some time. */
  readonly lateReplicas = new Set<string>();
  hasLostMessages = false;
  hasLostMemory = false;
  /** Redis has lost the owners of requests, and not the requests, so that checks can't withdraw them. */
  hasLostOwners = false;
  /** The longest hold that was asked for; 0 if none was. */
  longestHold = 0;
  /** The same for the time that places are kept. */
  longestKeep = 0;
  /** The same for pauses. */
  longestPause = 0;
  /** The same for the reports of vendors. */
  longestReport = 0;
  /** What was done, and what came of it. */
  readonly trace: string[] = [];
  readonly #judge: Judge;
  #violation: Error | undefined;
  #nextRequestId = '';

  /** @param scripts texts of the scripts by their names */
  constructor(
    redis: Redis,
    readonly shape: WorldShape,
    scripts: Readonly<Record<string, string>>,
  ) {
    worlds += 1;
    this.rules.add(shape);
    const naming = new KeyNaming(`simulation-${worlds}:`);
    this.stored = new StoredKey(redis, naming.namesOf(KEY));
    const now = (): number => this.now;
    this.lock = new LeaderLock(now);
    this.replicas = REPLICA_NAMES.slice(0, shape.replicas).map(
      (name, index) =>
        new SimulatedReplica({
          name,
          index,
          shape,
          naming,
          scripts,
          now,
          redisNow: () => this.redisNow,
          lock: this.lock,
          nextRequestId: () => this.#nextRequestId,
          execute: (replica, command, args) => this.#execute(replica, command, args),
          publish: (text) => {
            this.#publish(text);
          },
        }),
    );
    this.#judge = new Judge(this);
  }

  /** Redis's time, in milliseconds. */
  get redisNow(): number {
    return BEGINNING_MILLIS + this.now - this.behindMillis;
  }

  /** Redis's clock goes back, and all others go on. */
  setClockBack(millis: number): void {
    this.behindMillis += millis;
    for (const { history } of this.replicas) history.clockWentBack(millis);
    this.#judge.clockWentBack(this.requests.values(), millis);
  }

  replica(name: string): SimulatedReplica | undefined {
    return this.replicas.find((replica) => replica.name === name);
  }

  requestOf(id: string): SimulatedRequest | undefined {
    return this.requests.get(id);
  }

  requestOfTicket(ticket: number): SimulatedRequest | undefined {
    return [...this.requests.values()].find((request) => request.ticket === ticket);
  }

  checkOfOwner(owner: string): SimulatedClient | undefined {
    return this.#ofOwners.get(owner);
  }

  /** A replica loads rules; one that stands still does so when it goes on. */
  giveRules(replica: SimulatedReplica, rules: NewRules): void {
    if (replica.life === 'frozen') {
      replica.onceThawed = () => {
        this.giveRules(replica, rules);
      };
      return;
    }
    const { windowMillis, algorithm, further } = replica.limits;
    replica.limits = withWindowsByRules({ windowMillis, algorithm, further, ...rules });
    this.rules.add(replica.limits);
    replica.history.loadedAt = this.redisNow;
    replica.room.limitsChanged();
  }

  /** The longest windows that there have been. */
  get longestWindow(): number {
    return Math.max(...this.rules.windows, ...this.rules.furtherWindows);
  }

  /**
   * Somebody asks.
   * @param isNamed whether the caller has chosen the id
   */
  ask(replica: SimulatedReplica, id: string, terms: CheckTerms, isNamed: boolean): void {
    const request = new SimulatedRequest(id, isNamed);
    this.requests.set(id, request);
    this.#check(replica, id, request, terms);
  }

  /** The caller of a request asks again with its id. The names of such checks are `<id>.<number>`, from 2 on. */
  askAgain(replica: SimulatedReplica, request: SimulatedRequest, terms: CheckTerms): void {
    this.#check(replica, `${request.id}.${request.checks.length + 1}`, request, terms);
  }

  #check(
    replica: SimulatedReplica,
    name: string,
    request: SimulatedRequest,
    terms: CheckTerms,
  ): void {
    const { canWait, holdMillis = 0, keepMillis = 0, windowMillis } = terms;
    const { id, isNamed } = request;
    if (windowMillis !== undefined) this.rules.addWindowOfRequest(windowMillis);
    const client = new SimulatedClient(name, request, replica.name, this.now, terms);
    this.longestHold = Math.max(this.longestHold, holdMillis);
    this.longestKeep = Math.max(this.longestKeep, keepMillis);
    this.clients.set(name, client);
    request.checks.push(client);
    this.#nextRequestId = id;
    const asked = isNamed ? { ...terms, requestId: id } : terms;
    if (isNamed) this.#ofOwners.set(replica.nextOwner, client);
    const decision = canWait
      ? replica.checkOrWait(asked, client.presence)
      : replica.check(asked, id);
    decision.then(
      (decision) => {
        if (decision.outcome === 'denied') client.reason = decision.reason;
        this.#told(client, decision.outcome);
      },
      (error: unknown) => {
        if (error instanceof RequestIdConflictError) client.conflict = error.conflict;
        this.#told(client, 'failed');
      },
    );
  }

  /** The connection of a check ends, or its caller can't tell whether it has. Its place or approval is kept from now on. */
  connectionEnded(client: SimulatedClient): void {
    client.endedAt = Math.min(client.endedAt, this.now);
    noteKept(this, client);
  }

  /** The connections of all checks at a replica end. */
  connectionsEnded(replica: SimulatedReplica): void {
    for (const client of this.clients.values()) {
      if (client.replica === replica.name && !client.outcome) this.connectionEnded(client);
    }
  }

  amend(replica: SimulatedReplica, id: string, amendment: Amendment): void {
    this.longestHold = Math.max(this.longestHold, amendment.holdMillis ?? 0);
    this.#traceEnd(`${id} amended`, replica.amend(id, amendment));
  }

  /** @param group undefined: the key as a whole */
  pause(replica: SimulatedReplica, millis: number, group?: string): void {
    this.longestPause = Math.max(this.longestPause, millis);
    this.#traceEnd('paused', replica.pause(millis, group));
  }

  report(replica: SimulatedReplica, report: RemainingReport): void {
    this.longestReport = Math.max(this.longestReport, report.resetMillis ?? 0);
    this.#traceEnd('reported', replica.reportRemaining(report));
  }

  refund(replica: SimulatedReplica, hits: number): void {
    this.#traceEnd('refunded', replica.refund(hits));
  }

  release(replica: SimulatedReplica, id: string): void {
    this.#traceEnd(`${id} released`, replica.release(id));
  }

  /**
   * Time goes on; what is due by then is still to be done.
   * @returns false where that would make something late in a world where nothing is
   */
  pass(millis: number): boolean {
    const { isPrompt } = this.shape;
    if (isPrompt && !(isQuiet(this) && millis <= millisToNext(this))) return false;
    if (isPrompt) {
      checkNobodyWaitsForNothing(this);
      checkRulesAreTaken(this);
      checkEverybodyIsTold(this);
      checkWaitsEnd(this);
    }
    this.now += millis;
    if (isPrompt) checkWindowsEnd(this);
    return true;
  }

  async loseMemory(what: string): Promise<void> {
    this.hasLostMemory = true;
    if (what in LOSSES_OF_HEADS) {
      await this.stored.lose(this.redisNow, LOSSES_OF_HEADS[what]!);
      return;
    }
    if (what in LOSSES_OF_GROUPS) {
      await this.stored.lose(this.redisNow, LOSSES_OF_GROUPS[what]!);
      this.#judge.groupsLost();
      return;
    }
    const isOfRecords = what === 'records';
    this.hasLostOwners ||= isOfRecords || what === 'state-and-records';
    for (const request of this.requests.values()) request.keptUntil = -Infinity;
    const isWhole = what === 'everything';
    const isOfQueue = QUEUE_PARTS.some((part) => part === what);
    // A Redis takes longer to start again than the tickets of the calls before are ahead of time.
    const restartMillis = isOfQueue ? 0 : 1;
    this.restartMillis += restartMillis;
    this.now += restartMillis;
    const { last } = this.stored;
    const hadWaiters = last.waiting.size > 0 || !last.isConsistent;
    await this.stored.lose(this.redisNow, LOSSES[what]!);
    if (isWhole) this.lock.forget();
    const lost = isWhole ? 'everything' : isOfQueue ? 'queue' : 'a part';
    const requests = [...this.requests.values()];
    if (isOfRecords) {
      // What counts without being held is in the sets of the window.
      const recorded = requests.filter(({ id, isNamed }) => isNamed || last.records.has(id));
      this.#judge.approvalsLost(recorded);
    }
    // Nobody waits, as far as is left to be lost.
    if (isOfQueue && !hadWaiters) return;
    const { state, waiting, isConsistent } = this.stored.last;
    const isRecovering = (state?.recoveryUntil ?? 0) > this.redisNow;
    const isGone = isConsistent && waiting.size === 0;
    this.#judge.memoryLost(requests, lost, !isRecovering && !isGone);
  }

  /** Removes what has expired by now. */
  async look(): Promise<void> {
    await this.stored.run(this.redisNow, ['ping']);
  }

  /**
   * Returns when everything that could run in this process has.
   * @throws Violation of an invariant in what has happened
   */
  async quiet(): Promise<void> {
    await nextTurn();
    if (this.#violation) throw this.#violation;
  }

  /** Whether everything comes to this replica without delay, and always has. */
  isPunctual(name: string): boolean {
    return this.returnsInTime(name) && !this.wasRedisAway;
  }

  /** Whether everything comes to this replica without delay while Redis is there, and soon after it is back. */
  returnsInTime(name: string): boolean {
    return this.shape.isPrompt && !this.lateReplicas.has(name) && this.replica(name)!.isAlive;
  }

  /** The waiters that a replica that learns of everything puts back, if Redis has lost them. */
  *waitersToReturn(): Iterable<SimulatedRequest> {
    if (this.hasLostMessages) return;
    for (const request of this.requests.values()) {
      const { newest, withdrawnBy } = request;
      const waits = newest.outcome === undefined || isStillKept(this, request);
      if (waits && withdrawnBy === 0 && this.isPunctual(newest.replica)) yield request;
    }
  }

  #traceEnd(what: string, call: Promise<unknown>): void {
    call.then(
      (result) => this.trace.push(`  ${what}: ${JSON.stringify(result)}`),
      () => this.trace.push(`  ${what}: unknown`),
    );
  }

  #publish(text: string): void {
    this.trace.push(`  published ${text}`);
    for (const { mailbox } of this.replicas) mailbox.post(text);
  }

  #told(client: SimulatedClient, outcome: SimulatedClient['outcome']): void {
    if (this.replica(client.replica)?.life === 'dead') return;
    client.outcome = outcome;
    this.connectionEnded(client);
    const told = client.reason ?? client.conflict ?? String(outcome);
    this.trace.push(`  ${client.name} is told: ${told}`);
    const fault = refusalFault(this, client) ?? conflictFault(this, client);
    if (fault) this.#fail(fault);
    if (outcome !== 'approved') return;
    const problem = client.request.isNamed
      ? this.#problemOfOwner(client)
      : this.#problemOfApproval(client.request);
    if (problem)
      this.#fail(new Violation('who is told so is approved', `${client.name} ${problem}`));
  }

  #problemOfOwner({ approvedBy, request }: SimulatedClient): string | false {
    // Redis may have lost who owns it.
    const isOwnerLost = this.hasLostMemory && request.approval !== undefined;
    return approvedBy === undefined && !isOwnerLost && 'had another owner when Redis approved it';
  }

  #problemOfApproval(request: SimulatedRequest): string | false {
    if (request.approval === undefined) return 'was not approved by Redis';
    if (request.releasedBy !== undefined) return 'had its approval released';
    return this.#hasSurelyLapsed(request) && 'had a hold that has lapsed';
  }

  /** Whether its hold lapsed so long ago that its replica's clock, which drifts, shows it as well. */
  #hasSurelyLapsed({ heldUntil, newest, approval }: SimulatedRequest): boolean {
    const { askedHold = 0 } = newest;
    // A wake from before a step of Redis's clock does not tell how old it is.
    if (approval && approval.call <= this.#judge.steppedAfter) return false;
    return this.redisNow > heldUntil + DRIFT * askedHold + 1;
  }

  async #execute(
    replica: string,
    command: string,
    args: readonly (string | number)[],
  ): Promise<unknown> {
    const script = this.#scriptUnderWay;
    try {
      const { reply, change } = await this.stored.run(this.redisNow, [command, ...args]);
      const parts = [reply, ...(Array.isArray(reply) ? (reply as unknown[]) : [])];
      for (const error of parts.filter((part) => part instanceof Error)) {
        if (isNotLoaded(error)) throw error;
        if (isSentAgain(error)) continue;
        throw new Violation('no script fails', `${script}: ${error.message}`);
      }
      const run = readRun(script, replica, this.redisNow, args);
      const about = script === 'withdraw' ? run.own.slice(1) : run.requestIds;
      this.trace.push(`  ${script} ${about.join(' ')}: ${this.#shown(reply)}`);
      this.#judge.judge(run, reply, change);
      for (const message of change.messages) this.#publish(message);
      if (reply instanceof Error) throw reply;
      return reply;
    } catch (error) {
      if (error instanceof Error && !isSentAgain(error)) this.#fail(error);
      throw error;
    }
  }

  #scriptUnderWay = '';

  /** Runs what a replica has asked Redis first. */
  async runFirst(replica: SimulatedReplica): Promise<boolean> {
    this.#scriptUnderWay = replica.connection.firstSent?.split(' ')[0] ?? '';
    return replica.connection.runFirst();
  }

  #fail(error: Error): void {
    this.#violation ??= error;
  }

  /** Tickets are shown from the beginning on. */
  #shown(reply: unknown): string {
    return JSON.stringify(reply, (_key, value: unknown) => {
      if (value instanceof Error) return value.message;
      const isTicket = typeof value === 'number' && value >= BEGINNING_MILLIS * 1000;
      return isTicket ? value - BEGINNING_MILLIS * 1000 : value;
    });
  }
}

/** Whether a command has failed since Redis does not have the script. */
function isNotLoaded({ message }: Error): boolean {
  return message.startsWith('NOSCRIPT');
}

/** Whether a command has done nothing, and its caller sends it again in another way. */
function isSentAgain(error: Error): boolean {
  return isNotLoaded(error) || timeOfStaleCall(error) !== undefined;
}

/** What is wrong with the conflict that a check was told of, if anything is. */
function conflictFault(world: World, client: SimulatedClient): Violation | undefined {
  const { name, conflict, request } = client;
  if (conflict === undefined || isTrue(world, client)) return undefined;
  return new Violation('a conflict of a request id is one', `${name}: ${conflict} ${request.id}`);
}

function isTrue(world: World, client: SimulatedClient): boolean {
  const { request, conflict, askedHits, askedHold } = client;
  const others = request.checks.filter((check) => check !== client && check.ranBy !== undefined);
  switch (conflict) {
    case 'taken_over':
      return others.length > 0;
    case 'other_hits':
      return others.some((check) => check.askedHits !== askedHits);
    case 'other_hold':
    case 'other_holder':
      return others.some((check) => check.askedHold !== askedHold);
    case 'withdrawn':
      // Redis does not remember why a place has ended that a later check has ended.
      return request.withdrawnBy > 0 || others.length > 0 || world.hasLostMemory;
    default:
      // The model judges whether it was released, or its hold lapsed. A check that is sent again may find its own approval so.
      return request.checks.some((check) => check.approvedBy !== undefined) || world.hasLostMemory;
  }
}
