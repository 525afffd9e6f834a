import { isDeepStrictEqual } from 'node:util';

import type { CalendarWindow } from '../../../src/limiter/calendar/calendar.js';
import type { Algorithm } from '../../../src/limiter/kinds/kinds.js';
import { calendarOf } from '../../../src/limiter/limits.js';
import { decodeStatuses } from '../../../src/redis/scripts/looks-codec.js';
import { KnownCalendar, textOfCalendar } from '../known-calendar.js';
import { luaNumber } from '../lua-constants.js';
import { ApprovalsSeen } from './approvals-seen.js';
import { checkDays, checkStale } from './calendars-seen.js';
import type { SimulatedRequest } from './client.js';
import { byNow, checkNothingLastsLonger } from './clock-went-back.js';
import { GroupsSeen } from './groups-seen.js';
import {
  findsNoKey,
  type JudgedCall,
  type JudgedWorld,
  type Loss,
  newlyApproved,
} from './judged-call.js';
import { KeptPlacesSeen } from './kept-places.js';
import { judgeByModel } from './oracle.js';
import { OwnersSeen } from './owners-seen.js';
import { QueueOrder, RECOVERY_MILLIS } from './queue-order.js';
import type { ScriptRun } from './script-run.js';
import { countsAt, idsOf, isIdle, keptMillisOf, type Snapshot, Violation } from './snapshot.js';
import type { Change } from './stored-key.js';
import { headsFault, inOrder, keptList, listIdOf } from './stored-lists.js';

/** Holds each script call against the model of the rules, and against what has been seen before. */
export class Judge {
  #calls = 0;
  /** Redis has lost a part of what it knew of the key since the key was made. */
  #isTorn = false;
  /** The length of the last pause, and when it ends by the world's time. */
  #pause = { millis: 0, endsAt: 0 };
  readonly #reports: ReportsSeen;
  /** The last script call before Redis's clock went back. */
  steppedAfter = 0;
  /** When Redis's clock went back last, by the world's time. */
  #steppedAt = -Infinity;
  /** Redis's clock has gone back, and no call has opened the key since. */
  #isBehind = false;
  /** When the leases end that a renewal has extended last, by their ids. */
  readonly #renewed = new Map<string, number>();
  readonly #approvals: ApprovalsSeen;
  readonly #order: QueueOrder;
  readonly #owners: OwnersSeen;
  readonly #kept: KeptPlacesSeen;
  readonly #groups: GroupsSeen;

  constructor(private readonly world: JudgedWorld) {
    this.#approvals = new ApprovalsSeen(world);
    this.#order = new QueueOrder(world);
    this.#owners = new OwnersSeen(world);
    this.#kept = new KeptPlacesSeen(world);
    this.#groups = new GroupsSeen(world);
    this.#reports = new ReportsSeen(world);
  }

  /**
   * Redis has lost keys.
   * @param isShown whether what is left shows that others waited, and has them come back in a recovery of their own: a queue
   *   that is lost as a whole does not, and what is lost in a recovery has what is left of that
   */
  memoryLost(requests: Iterable<SimulatedRequest>, lost: Loss, isShown: boolean): void {
    if (lost !== 'queue') this.approvalsLost(requests);
    this.#isTorn = lost !== 'everything';
    this.#order.memoryLost(lost === 'queue' && isShown);
    if (lost === 'everything') this.#approvals.memoryLost();
  }

  /** Redis has lost what it knew of the approvals of these requests, and a part of the key. */
  approvalsLost(requests: Iterable<SimulatedRequest>): void {
    for (const { approval } of requests) if (approval) approval.isForgotten = true;
    this.#groups.lost();
    this.#isTorn = true;
  }

  /** Redis has lost what groups have to themselves. */
  groupsLost(): void {
    this.#groups.lost();
  }

  /**
   * Redis's clock has gone back. What Redis promises to remember for some time is remembered for that time by the world's
   * time.
   */
  clockWentBack(requests: Iterable<SimulatedRequest>, millis: number): void {
    this.#isBehind = true;
    this.steppedAfter = this.#calls;
    this.#steppedAt = this.world.now;
    this.#groups.lost();
    for (const request of requests) {
      const { approval } = request;
      if (approval) {
        request.approval = { ...approval, windowEnd: approval.windowEnd - millis };
      }
    }
  }

  /** @param reply what the script replied */
  judge(run: ScriptRun, reply: unknown, change: Change): void {
    this.#calls += 1;
    if (checkStale(run, reply, change)) return;
    if (run.script === 'status') {
      checkLook(run, reply, change);
      return;
    }
    const { after, messages } = change;
    const isOpened = run.script !== 'renew' && !needsAllNames(reply);
    const stored = this.#found(run, change, isOpened);
    const beginsKey = findsNoKey(run, stored, after);
    const wasTorn = this.#isTorn;
    if (isOpened && stored.state && after.state && beginsKey) this.#isTorn = false;
    const approved = newlyApproved(run, stored, after, beginsKey);
    const call: JudgedCall = {
      ...{ number: this.#calls, run, reply, stored, after, messages, approved, beginsKey },
      isTorn: this.#isTorn,
    };
    // Of a torn key, the parts contradict each other until it is begun again, as what that call finds of it does.
    if (isOpened && !wasTorn && stored.isConsistent && after.isConsistent) judgeByModel(call);
    this.#owners.judge(call);
    if (isOpened) this.#approvals.judge(call);
    if (isOpened) this.#reports.judge(call);
    if (isOpened) this.#groups.judge(call);
    if (isOpened && !this.#isTorn) checkDays(call);
    this.#kept.judge(call, this.#steppedAt > -Infinity);
    this.#order.judge(call);
    checkLists(call, this.world);
    checkRecovery(call, this.world, this.#steppedAt, (windowEnd) =>
      this.#approvals.rememberedUntil(windowEnd),
    );
    if (run.script === 'renew') this.#checkRenewal(call);
    if (!isOpened) return;
    for (const [id, { lapsesAt }] of after.holds) {
      const request = this.world.requestOf(id);
      if (request) request.heldUntil = lapsesAt;
    }
    if (!isIdle(after, run.now)) this.#checkTimes(call);
  }

  /**
   * What a call has to go by. What has expired counts as well, since it must have been idle, or over; but not if the
   * clock has gone back since, so that it might not be over any more.
   */
  #found(run: ScriptRun, { left, before, after }: Change, isOpened: boolean): Snapshot {
    if (!isOpened) return before;
    // A record that has expired does not tell of its request any more.
    const { records, ends } = before;
    const said = withSaidCalendars(this.#isBehind ? before : { ...left, records, ends }, run);
    const found = byNow(said, run.now);
    const isFirst = this.#isBehind;
    this.#isBehind = false;
    const { state } = found;
    if (run.script === 'pause' && run.own[2] === '') {
      const millis = Number(run.own[0]);
      this.#pause = { millis, endsAt: this.world.now + millis };
    } else if (isFirst && state && state.pausedUntil > run.now && after.state) {
      const pausedUntil = this.#pauseByNow(run.now, state.pausedUntil, after.state.pausedUntil);
      return { ...found, state: { ...state, pausedUntil } };
    }
    return found;
  }

  /**
   * Until when a pause lasts that was set before the clock went back: no longer than its length from now on, and no
   * shorter than by the world's time. Redis knows the step only as far as the times show it that it has.
   */
  #pauseByNow(now: number, before: number, after: number): number {
    const earliest = now + Math.max(1, this.#pause.endsAt - this.world.now);
    const latest = Math.min(before, now + this.#pause.millis);
    if (after >= earliest && after <= latest) return after;
    const detail = `${after - now} ms, not ${earliest - now} to ${latest - now}`;
    throw new Violation('a pause is as long as asked for after a step of the clock', detail);
  }

  #checkRenewal(call: JudgedCall): void {
    const { run, after } = call;
    if (!checkRenewal(call, this.world.shape.leaseMillis)) return;
    for (const id of idsOf(after, run.replica)) this.#renewed.set(id, after.leases[id]!);
  }

  /** Nothing lasts longer than it was set for, also after Redis's clock has gone back. */
  #checkTimes({ run: { now, replica }, stored, after }: JudgedCall): void {
    const { leaseMillis } = this.world.shape;
    // A caller that looks at its own lease sees the step.
    const ids = idsOf(stored, replica);
    const isShown = ids.some((id) => stored.leases[id]! > now + leaseMillis + keptMillisOf(id));
    const hasLooked = ids.some((id) => after.leases[id] !== stored.leases[id]);
    const renewed = isShown && hasLooked ? new Map<string, number>() : this.#renewed;
    checkNothingLastsLonger(after, now, leaseMillis, renewed);
  }
}

/** A check that was sent with few names has decided nothing, and is sent again. */
function needsAllNames(reply: unknown): boolean {
  return Array.isArray(reply) && reply.length > 0 && reply.every((part) => part === null);
}

/** Of a queue with several lists: its heads are those of its lists, and nobody changes lists. */
function checkLists(call: JudgedCall, world: JudgedWorld): void {
  const { stored, after } = call;
  if (!after.isConsistent) return;
  const fault = headsFault(after);
  // What is left of the state of a key that is idle may tell of a queue that is gone.
  if (fault && !isIdle(after, call.run.now) && mustHaveHeads(call)) throw fault;
  for (const [id, place] of after.waiting) {
    const before = stored.waiting.get(id);
    const { checks } = world.requestOf(id)!;
    const isKept =
      before?.ticket === place.ticket
        ? isDeepStrictEqual(before.list, place.list)
        : checks.some(({ list }) => isDeepStrictEqual(list && keptList(list), place.list));
    if (!isKept)
      throw new Violation('a waiter stays in its list', `${id} is in ${listIdOf(place)}`);
  }
}

/** Heads that are lost come back with the next settle, or before anybody is served. */
function mustHaveHeads({ run, stored, after, approved, isTorn }: JudgedCall): boolean {
  const wereThere = !isTorn && stored.isConsistent && !headsFault(stored);
  const isServed = approved.some((id) => stored.waiting.has(id));
  return wereThere || isServed || (run.script === 'settle' && after.waiting.size > 0);
}

/** A call that looks at requests changes nothing, and says how many wait before each. */
function checkLook(run: ScriptRun, reply: unknown, { before, after }: Change): void {
  // Some of the names may have expired since the call before.
  if (!isDeepStrictEqual(after, { ...before, keys: after.keys, past: after.past })) {
    throw new Violation('a look changes nothing', run.own.join(' '));
  }
  if (!before.isConsistent) return;
  for (const [i, status] of decodeStatuses(reply).entries()) {
    if (status?.status !== 'waiting') continue;
    const { recoveryUntil = 0 } = before.state ?? {};
    // If no call has ended it, it begins again, unless the caller knows better.
    if (recoveryUntil > 0 && recoveryUntil <= run.now) continue;
    const expected = positionOf(before, run.own[i]!, run.now);
    if (status.position === expected) continue;
    const detail = `${run.own[i]} is told ${status.position}, not ${expected}`;
    throw new Violation('a position counts those who wait before', detail);
  }
}

function positionOf(snapshot: Snapshot, id: string, now: number): number {
  const isRecovering = (snapshot.state?.recoveryUntil ?? 0) > now;
  const place = snapshot.waiting.get(id)!;
  const all = inOrder(snapshot.waiting).filter(([, it]) => listIdOf(it) === listIdOf(place));
  const before = all.slice(
    0,
    all.findIndex(([each]) => each === id),
  );
  return before.filter(([, other]) => isRecovering || countsAt(snapshot, other, now)).length + 1;
}

/** What was stored, as a call finds it whose caller says windows of calendars. */
function withSaidCalendars(stored: Snapshot, { batches, rules }: ScriptRun): Snapshot {
  const { state } = stored;
  if (!state) return stored;
  const said = new Map<string, CalendarWindow | undefined>();
  for (const limit of (batches[0]?.rules ?? rules).limits) {
    const calendar = calendarOf(limit);
    if (calendar instanceof KnownCalendar) said.set(textOfCalendar(calendar), calendar.said);
  }
  const asSaid = (algorithm: Algorithm): Algorithm => {
    const calendar = calendarOf({ algorithm });
    if (!(calendar instanceof KnownCalendar)) return algorithm;
    return {
      name: 'fixed_window',
      calendar: calendar.saidToBe(said.get(textOfCalendar(calendar))),
    };
  };
  const further = state.further.map((limit) =>
    limit.algorithm ? { ...limit, algorithm: asSaid(limit.algorithm) } : limit,
  );
  return { ...stored, state: { ...state, algorithm: asSaid(state.algorithm), further } };
}

/** A report that is in force. */
interface SeenReport {
  /** When it ends, by Redis's clock and by the world's time. */
  readonly until: number;
  readonly endsAt: number;
  /** How long it lasts. */
  readonly millis: number;
}

/** The reports of vendors over all calls. Also after Redis's clock has gone back, none lasts longer than it said. */
class ReportsSeen {
  /** By the names of the limits. */
  #inForce = new Map<string, SeenReport>();

  constructor(private readonly world: JudgedWorld) {}

  judge({ run: { script, now }, after }: JudgedCall): void {
    const before = this.#inForce;
    this.#inForce = new Map();
    for (const [name, until] of endsIn(after)) {
      const seen = before.get(name);
      const isNew = script === 'remaining' && seen?.until !== until;
      const millis = until - now;
      if (isNew || !seen) {
        this.#inForce.set(name, { until, endsAt: this.world.now + millis, millis });
        continue;
      }
      const least = seen.endsAt - this.world.now;
      if (millis < least || millis > seen.millis) {
        const detail = `${millis} ms of ${name}, not ${least} to ${seen.millis}`;
        throw new Violation('a report lasts as long as it says', detail);
      }
      this.#inForce.set(name, { ...seen, until });
    }
  }
}

function endsIn({ state }: Snapshot): (readonly [string, number])[] {
  const limits = state ? [{ ...state, name: 'own' }, ...state.further] : [];
  return limits.flatMap(({ name, report }) => (report ? [[name, report.until] as const] : []));
}

const LEASE_PART_LEFT = luaNumber('lib/recovery', 'LEASE_PART_LEFT');
/** What all replicas are told when Redis seems to have lost the key. */
const MEMORY_LOST = '{"memoryLost":true}';

/**
 * Where Redis is always there and has lost nothing, nobody waits for others to come back.
 * @param steppedAt when Redis's clock went back last, by the world's time
 * @param rememberedUntil until when an approval is remembered of a window that ends then
 */
function checkRecovery(
  { run: { replica, lowestTicket, now }, stored, after: { state }, messages }: JudgedCall,
  world: JudgedWorld,
  steppedAt: number,
  rememberedUntil: (windowEnd: number) => number,
): void {
  if (world.hasLostMemory) return;
  const granted = world.requestOfTicket(lowestTicket);
  const isRemembered =
    granted?.approval?.isForgotten === false && now < rememberedUntil(granted.approval.windowEnd);
  // A key that began so lately could not have recovered, if it was lost instead of idle.
  const mayHaveRecovered = now >= (state?.born ?? 0) + RECOVERY_MILLIS;
  if (messages.includes(MEMORY_LOST) && isRemembered && mayHaveRecovered) {
    throw new Violation('an approval is not taken for a loss', `${granted.id} was approved`);
  }
  const begins = (state?.recoveryUntil ?? 0) > 0 && (stored.state?.recoveryUntil ?? 0) === 0;
  // For a lease after a step of the clock no caller can know that Redis was up before.
  if (world.now < steppedAt + world.shape.leaseMillis) return;
  if (begins && world.isPunctual(replica)) {
    throw new Violation('a key recovers after a loss only', `${replica} begins a recovery`);
  }
}

/**
 * A renewal changes the caller's leases only, and not if Redis may have been down: a recovery comes first.
 * @returns whether the leases are renewed
 */
function checkRenewal({ run, stored, after }: JudgedCall, leaseMillis: number): boolean {
  const { replica, now } = run;
  if (isDeepStrictEqual(after.leases, stored.leases)) return false;
  // A replica does not look for kept places if it knows of none: one may be of a check that has failed.
  const ids = idsOf(stored, replica).filter((id) => after.leases[id] !== stored.leases[id]);
  const renewed = ids.map((id) => [id, now + leaseMillis + keptMillisOf(id)] as const);
  if (!isDeepStrictEqual(after.leases, { ...stored.leases, ...Object.fromEntries(renewed) })) {
    throw new Violation('a renewal renews the leases of one', JSON.stringify(after.leases));
  }
  const was = Math.min(...ids.map((id) => stored.leases[id]! - keptMillisOf(id)));
  if (was - LEASE_PART_LEFT * leaseMillis < now) {
    throw new Violation('a recovery comes before a renewal', `${replica} was silent`);
  }
  return true;
}
