import { isDeepStrictEqual } from 'node:util';

import type {
  Amendment,
  KeyLimits,
  Quota,
  RefundRequest,
  RemainingReport,
} from '../../../src/limiter/limiter.js';
import {
  calendarOf,
  isSameAlgorithm,
  type LimitState,
  ownLimit,
} from '../../../src/limiter/limits.js';
import type { AmendOutcome } from '../../../src/limiter/memory/approvals.js';
import { rejectionOf } from '../../../src/limiter/memory/instance-decision.js';
import { millisUntil } from '../../../src/limiter/memory/limits/counted-limit.js';
import { parseClaim } from '../../../src/limiter/request.js';
import { AMEND_REPLY, decodeReported } from '../../../src/redis/scripts/operations.js';
import { HEAD, VERDICT } from '../../../src/redis/scripts/check-codec.js';
import { quotaIn, type UsedOfLimits } from '../../../src/redis/scripts/limits-codec.js';
import { decodeSettleReply } from '../../../src/redis/scripts/settle-codec.js';
import { textOfCalendar } from '../known-calendar.js';
import { furtherLimit } from '../limits.js';
import { luaNumber } from '../lua-constants.js';
import { reportsOf, type StoredState, windowEnd, windowLength } from '../stored-state.js';
import { haveLimits } from './groups-seen.js';
import { type JudgedCall, verdictsIn, withdrawnBy } from './judged-call.js';
import { numberOf } from './model-ids.js';
import { listsOf, storedLists } from './model-lists.js';
import { Model, type ModelRecord, type ModelWaiter, rulesInForce } from './model.js';
import type { CheckRun, ScriptRun, WaiterRun } from './script-run.js';
import { LIMIT_NAMES } from './shape.js';
import {
  countsAt,
  generationsOf,
  hasLease,
  idsOf,
  isIdle,
  type Snapshot,
  Violation,
} from './snapshot.js';
import { keptList, withRestoredHeads } from './stored-lists.js';
import { requestsKnown, type StoredRequest, withoutEnded } from './stored-requests.js';

/** Longer than any world goes on. */
const FOREVER = 1e12;

const VERDICTS = {
  approved: VERDICT.approved,
  denied: VERDICT.denied,
  queue_full: VERDICT.queueFull,
  queue_full_of_group: VERDICT.queueFullOfGroup,
  no_place: VERDICT.noPlace,
  key_full: VERDICT.keyFull,
  too_many_hits: VERDICT.tooManyHits,
  store_full: VERDICT.storeFull,
} as const;

/** Decisions by the record of a request. */
const VERDICTS_BY_RECORD = {
  wait_expired: VERDICT.waitExpired,
  used: VERDICT.idUsed,
  other_hits: VERDICT.otherHits,
  other_hold: VERDICT.otherHold,
  other_holder: VERDICT.otherHolder,
} as const;

/** What a confirmation says of the one key of a world. */
interface ConfirmSaid {
  readonly mayBeTold: readonly boolean[];
  readonly microsToRoom: number;
  readonly used: unknown;
}

/**
 * Compares what a script has done with what the embedded limiter, which is the model of the rules, makes of the same
 * call. The model begins with what was stored before the call, so a call that is excused excuses no other.
 *
 * The embedded limiter does not know everything. The leases say which waiters count: those of dead replicas are left
 * out before, and those that a settle puts back are added. In a recovery the key is closed, as in a pause. Approvals of
 * windows that are over may be remembered for a check that is sent again, or not. `expires` is compared only after a
 * check, and if nothing else keeps the key.
 *
 * @throws Violation where they differ
 */
export function judgeByModel(call: JudgedCall): void {
  if (isExcused(call)) return;
  const { run, reply, approved, stored, beginsKey } = call;
  if (beginsKey && !isIdle(stored, run.now)) {
    throw new Violation('a key stays until it is idle', `none is found by ${run.script}`);
  }
  if (beginsKey && !makesKey(run)) {
    const expected = [[], replyIfGone(call) ?? replyOf(run, reply)];
    same('nothing is done to a key that is idle', [approved, replyOf(run, reply)], expected);
    return;
  }
  new Comparison(call, beginsKey ? undefined : stored.state).run();
}

function makesKey({ script, own, rules }: ScriptRun): boolean {
  if (script === 'remaining') return rejectionOf(rules.limits, reportIn(own)) === undefined;
  return script === 'check' || (script === 'pause' && Number(own[0]) > 0);
}

/** What the scripts reply if there is no key. A withdrawal and a settle say more. */
function replyIfGone({ run: { script, own, rules, confirmations }, stored }: JudgedCall): unknown {
  if (script === 'release' || script === 'refund') return 0;
  if (script === 'confirm') {
    const known = requestsKnown(stored);
    const mayBeTold = confirmations.map(({ id, owner }) => {
      const record = known.get(id);
      return record?.is === 'approved' && record.owner === owner;
    });
    return [{ mayBeTold }];
  }
  if (script === 'amend') return AMEND_REPLY.notFound;
  return script === 'remaining' ? rejectionOf(rules.limits, reportIn(own)) : undefined;
}

/** A reply is compared as its caller reads it. */
function replyOf({ script }: ScriptRun, reply: unknown): unknown {
  if (script === 'confirm') return (reply as string[]).map((said) => JSON.parse(said) as unknown);
  return script === 'remaining' ? decodeReported(reply) : reply;
}

/** One call of a script beside the same of the model. */
class Comparison {
  readonly #model: Model;
  /** The waiters from before that count. */
  readonly #waiting: ReadonlyMap<string, ModelWaiter>;
  /** The requests with ids of their callers that the call finds. */
  readonly #known: ReadonlyMap<string, StoredRequest>;
  readonly #isRecovering: boolean;
  /** How long nobody is approved, by a pause or a recovery. */
  readonly #closedMillis: number;
  readonly #now: number;
  /** What the model has approved, other than from the queue. */
  readonly #approved: string[] = [];
  /** The checks that have joined its queue. */
  readonly #joined = new Map<string, CheckRun>();
  /** The waiters from before whose wait a later check has ended. */
  readonly #ended = new Set<string>();
  /** Of a settle, by their ids: the later checks that get what was put back for earlier checks of their replica. */
  readonly #later: ReadonlyMap<string, WaiterRun>;
  /** The later checks that have taken places over. */
  readonly #takers = new Map<string, CheckRun>();

  /** @param state of the key; undefined if it begins with the call */
  constructor(
    private readonly call: JudgedCall,
    state: Snapshot['state'],
  ) {
    const { run, stored, after } = call;
    const { now } = run;
    this.#now = now;
    const recoveryUntil = after.state?.recoveryUntil ?? 0;
    this.#isRecovering = recoveryUntil > now;
    const known = this.#requestsFound(state);
    this.#later = laterChecks(run, known);
    this.#known = withLaterOwners(known, this.#later);
    this.#waiting = this.#waitersFound();
    this.#closedMillis = Math.max(0, recoveryUntil - now, (state?.pausedUntil ?? 0) - now);
    this.#model = state
      ? Model.restored(
          { ...withRestoredHeads(stored), state },
          this.#waiting,
          now + this.#closedMillis,
          this.#known,
        )
      : Model.begun(now, run.batches[0]?.rules ?? run.rules, this.#known);
    if (state) this.#model.rules = this.#rulesThatCount(state);
  }

  run(): void {
    const { run, reply } = this.call;
    const { script, own } = run;
    const { instance } = this.#model;
    const now = this.#now;
    const [id = ''] = run.requestIds;
    if (script === 'check') this.#check(reply as unknown[]);
    else if (script === 'settle') this.#settle(reply);
    else if (script === 'withdraw') this.#withdraw();
    else if (script === 'confirm') this.#confirm(JSON.parse((reply as [string])[0]) as ConfirmSaid);
    else if (script === 'pause') instance.pause(now, this.#isRecovering ? FOREVER : Number(own[0]));
    else if (script === 'release') {
      const isReleased = this.#model.release(now, id, own[1] === '1');
      same('an approval is released once', reply, isReleased ? 1 : 0);
    } else if (script === 'amend') {
      const amended = amendmentReply(this.#model.amend(now, id, amendmentIn(own)));
      same('an amendment finds what counts', reply, amended);
    } else if (script === 'refund') {
      const refunded = instance.refund(now, (JSON.parse(own[0]!) as RefundRequest).hits, undefined);
      same('a refund gives back what counts and is not held', reply, refunded);
    } else if (script === 'remaining') {
      const reported = instance.reportRemaining(now, reportIn(own));
      same('a report leaves what remains', replyOf(run, reply), reported);
    }
    this.#compare();
  }

  /** The waiters as the call finds the queue, in their order. */
  #waitersFound(): ReadonlyMap<string, ModelWaiter> {
    const { run, reply, stored } = this.call;
    const isSettle = run.script === 'settle';
    const claimed = this.#claimedByRecord;
    const living = [...stored.waiting]
      .filter(
        ([id, place]) =>
          this.#isRecovering ||
          countsAt(stored, place, run.now) ||
          (isSettle && place.replica === run.replica) ||
          claimed.has(id),
      )
      .map(([id, waiter]): [string, ModelWaiter] => {
        const { keepMillis } = this.#later.get(id) ?? waiter;
        return [id, { ...waiter, keepMillis, owner: this.#known.get(id)?.owner }];
      });
    const putBack = isSettle ? decodeSettleReply(reply, run.replica).putBack : [];
    const returning = putBack.map((claim): [string, ModelWaiter] => {
      const waiter = run.waiters.get(claim)!;
      return [waiter.id, waiter];
    });
    return new Map([...living, ...returning].sort(([, a], [, b]) => a.ticket - b.ticket));
  }

  /**
   * The requests whose checks were answered by their records. Places of dead replicas are among them, unless they were
   * removed before.
   */
  get #claimedByRecord(): ReadonlySet<string> {
    const { run, reply, stored } = this.call;
    const answers: readonly unknown[] = Object.values(VERDICTS_BY_RECORD);
    const ids = verdictsIn(this.call)
      .filter(([{ id, owner }, verdict]) => {
        const isPlace = owner !== undefined && verdict === stored.waiting.get(id)?.ticket;
        return isPlace || answers.includes(verdict);
      })
      .map(([{ id }]) => id);
    return new Set(run.script === 'release' && reply === 1 ? run.requestIds : ids);
  }

  /** @param state of the key; undefined if it begins with the call */
  #requestsFound(state: Snapshot['state']): ReadonlyMap<string, StoredRequest> {
    const { run, reply, stored } = this.call;
    const found = state
      ? withoutEnded(stored, run.now, this.#isNeededInNextWindow(state))
      : { ...stored, state: undefined };
    const known = requestsKnown(found);
    // A hold may have lapsed before its waiter was told, which waits again.
    const putBack = run.script === 'settle' ? decodeSettleReply(reply, run.replica).putBack : [];
    for (const claim of putBack) known.delete(parseClaim(claim).requestId);
    return known;
  }

  /** Whether an approval that is not held counts in any limit once the call has begun a window, or is among past requests. */
  #isNeededInNextWindow(state: StoredState): (id: string) => boolean {
    const { stored, after, approved } = this.call;
    let model: Model | undefined;
    return (id) => {
      if (after.past.has(id) && !approved.includes(id)) return true;
      if (!model) {
        model = Model.restored({ ...stored, state }, new Map(), FOREVER, requestsKnown(stored));
        model.rules = this.#rulesThatCount(state);
        model.instance.settle(this.#now);
      }
      return model.takenBy(id).some((taken) => taken !== undefined);
    };
  }

  /** The rules that may come into force with the call: those of the caller, unless they may be older. */
  #rulesThatCount(state: StoredState): KeyLimits {
    const { now, rules, batches } = this.call.run;
    const ofCaller = batches[0]?.rules ?? rules;
    if (!hasOlderRules(this.call.run, state)) return ofCaller;
    const { overridden, window, nextWindow } = state;
    const windowMillis = nextWindow > 0 && now >= windowEnd(state) ? nextWindow : window;
    const isSet = overridden.includes('window') || windowMillis === nextWindow;
    const [own, ...further] = rulesInForce(state).limits;
    // Ceilings are those of the caller's windows, and drop what a request has set in favour of the caller's rules.
    const hasWindow = isSet || ofCaller.limits[0].windowMillis === window;
    const isOfCaller = hasWindow && isSameAlgorithm(own, ofCaller.limits[0]);
    const maximum = overridden.includes('max') ? ofCaller.limits[0].maximum : own.maximum;
    return {
      limits: [{ ...own, windowMillis, maximum }, ...further],
      maxRequestsInQueue: overridden.includes('queueMax')
        ? ofCaller.maxRequestsInQueue
        : state.queueMax,
      ceilings: isOfCaller ? ofCaller.ceilings : undefined,
    };
  }

  #check(reply: readonly unknown[]): void {
    let first = 0;
    for (const batch of this.call.run.batches) {
      // A batch is sent again that needs more names, or the windows of a calendar.
      if (reply[first] === null || reply[first] instanceof Error) {
        first += 1;
        continue;
      }
      const verdicts = first + HEAD;
      this.#model.begin(this.#now, batch);
      for (const [i, check] of batch.checks.entries()) {
        same(
          `a check is decided by the rules`,
          reply[verdicts + i],
          this.#verdict(check, reply[verdicts + i]),
        );
      }
      this.#compareQuota(reply[first], reply[first + 2]);
      first = verdicts + batch.checks.length;
    }
  }

  /** @param reply which has the ticket, and shows whether an approval was remembered */
  #verdict(check: CheckRun, reply: unknown): unknown {
    const { id, hits } = check;
    const { run, stored, approved, after } = this.call;
    const place = stored.waiting.get(id);
    if (run.isSentAgain && check.owner === undefined) {
      const isApproved = reply === VERDICT.approved && !approved.includes(id);
      if (isApproved || this.#model.granted.includes(id)) return VERDICT.approved;
      // The place of a dead replica may have been removed.
      if (place && (this.#waiting.has(id) || reply === place.ticket)) return place.ticket;
    }
    if (this.#wasTakenOver(check, reply)) return VERDICT.takenOver;
    const isKnown = check.owner !== undefined && this.#model.recordOf(id) !== undefined;
    const decision = this.#model.check(this.#now, this.#withLimitOfPlace(check));
    if (decision === 'takes_over') {
      this.#takers.set(id, check);
      return place && !this.#ended.has(id) ? place.ticket : ticketIn(reply);
    }
    if (decision === 'wait_expired') {
      this.#ended.add(id);
      this.#joined.delete(id);
      this.#takers.delete(id);
    }
    if (decision in VERDICTS_BY_RECORD) {
      return VERDICTS_BY_RECORD[decision as keyof typeof VERDICTS_BY_RECORD];
    }
    // One that is known counts nothing.
    if (decision === 'approved' && !isKnown) this.#approved.push(id);
    if (decision === 'turn_too_late') {
      // Whole microseconds in Redis. In milliseconds, a fraction of them is rounded.
      const millis = this.#model.instance.turns.millisToTurn(this.#now, { hits, list: check.list });
      return VERDICT.turnTooLate - Math.round(1000 * millis);
    }
    if (decision === 'paused')
      return (after.state?.pausedUntil ?? 0) > this.#now ? VERDICT.paused : VERDICT.denied;
    if (decision !== 'waiting') return VERDICTS[decision as keyof typeof VERDICTS];
    // It may have come before the waiters of its group, and fit.
    if (check.list?.kind === 'group' && check.list.headStartMillis !== undefined) {
      this.#model.instance.settle(this.#now);
    }
    this.#joined.set(id, check);
    // A later check may have ended its wait.
    if (check.owner !== undefined) return ticketIn(reply);
    // A later batch may have granted it.
    return after.waiting.get(id)?.ticket ?? reply;
  }

  /**
   * The longest wait of a kept place has begun with its ticket. The model does not know when waiters from before have come:
   * their wait is over at once, or not by this check.
   */
  #withLimitOfPlace(check: CheckRun): CheckRun {
    const { id, keepMillis, maxWaitMillis } = check;
    const place = this.#ended.has(id) ? undefined : this.#waiting.get(id);
    if (!place || keepMillis === undefined) return check;
    // The call is sent again.
    if (place.owner === check.owner) return { ...check, maxWaitMillis: Infinity };
    const waited = this.#now - Math.floor(place.ticket / 1000);
    // One that waits for no time is over also if the clock has gone back since.
    const isOver = maxWaitMillis === 0 || waited >= maxWaitMillis;
    return { ...check, maxWaitMillis: isOver ? 0 : Infinity };
  }

  /**
   * Whether another check has the request of a check that is sent again, whose caller has not been told of an approval. The
   * model sends no call again, and does not know the places of dead replicas, which may have been removed.
   */
  #wasTakenOver({ id, owner }: CheckRun, reply: unknown): boolean {
    const { run, stored } = this.call;
    if (!run.isSentAgain || owner === undefined) return false;
    const mayBeOfDead = reply === VERDICT.takenOver && stored.waiting.has(id);
    const ofDead = mayBeOfDead ? ownedBy(requestsKnown(stored).get(id)) : undefined;
    const record = this.#model.recordOf(id) ?? ofDead;
    if (record?.state !== 'waiting' && record?.state !== 'granted') return false;
    return record.owner !== numberOf(owner);
  }

  #settle(reply: unknown): void {
    const { run, stored, after } = this.call;
    const { millisToRoom = 0, used, ...said } = decodeSettleReply(reply, run.replica);
    const { waiting, holdsLeft, ended } = said;
    this.#claimForLater();
    this.#model.instance.settle(this.#now);
    this.#compareQuota(Math.round(1000 * millisToRoom), used);
    same('a settle tells how many wait', waiting, this.#model.instance.waiting);
    const known = requestsKnown(stored);
    // Of several checks of a request that Redis does not know, the newest has the place.
    const newest = newestChecks(run);
    const outdated = [...run.waiters].filter(([, { id, owner }]) => {
      if (owner === undefined) return false;
      const record = known.get(id);
      if (this.#later.get(id)?.owner === owner) return false;
      return record ? record.owner !== owner : newest.get(id)!.owner !== owner;
    });
    same(
      'a settle tells whose places were taken over',
      ended.filter(({ why }) => why === 'taken_over').map(({ claim }) => claim),
      outdated.map(([claim]) => claim),
    );
    for (const [claim, millis] of holdsLeft) {
      const { requestId: id } = parseClaim(claim);
      const lapsesIn = (after.holds.get(id)?.lapsesAt ?? 0) - this.#now;
      same('a hold lasts as long as a settle tells', millis, lapsesIn);
    }
  }

  /** Makes changes, and serves the queue after the last of them. */
  #beforeServing<Result>(change: () => Result): Result {
    const { instance } = this.#model;
    instance.pause(this.#now, FOREVER);
    const result = change();
    instance.pause(this.#now, this.#closedMillis);
    return result;
  }

  /** Later checks without kept places get approvals that were kept for earlier ones before anybody is served. */
  #claimForLater(): void {
    const claimed = [...this.#later].filter(([id, { keepMillis }]) => {
      return this.#known.get(id)?.is === 'granted' && keepMillis === undefined;
    });
    if (claimed.length === 0) return;
    this.#beforeServing(() => {
      for (const [id, { owner }] of claimed) this.#model.claim(this.#now, { id, owner });
    });
  }

  /** All of them leave before anybody is served. */
  #withdraw(): void {
    this.#beforeServing(() => {
      for (const claimed of this.call.run.withdrawals) this.#model.withdraw(this.#now, claimed);
    });
  }

  /** All of them get their approvals before anybody is served. */
  #confirm({ mayBeTold: told, microsToRoom, used }: ConfirmSaid): void {
    const mayBeTold = this.#beforeServing(() =>
      this.call.run.confirmations.map((claim) => this.#model.claim(this.#now, claim)),
    );
    same('a caller is told of an approval that is its own', told, mayBeTold);
    this.#compareQuota(microsToRoom, used);
  }

  /** What the limits have left, as the caller reads it. */
  #compareQuota(micros: unknown, used: unknown): void {
    if (this.#isRecovering) return;
    const { instance } = this.#model;
    const { limits } = instance.inspect(this.#now);
    const told = quotaIn(limits, used as UsedOfLimits, Number(micros) / 1000);
    same('a quota is what limits have left', quotas(told), quotas(instance.quota(this.#now)));
    same(
      'room is told',
      micros,
      Math.round(1000 * millisUntil(instance.turns.exactRoomAt, this.#now)),
    );
  }

  #compare(): void {
    const { run, after } = this.call;
    const { state } = after;
    if (!state) throw new Violation('a key stays until it is idle', 'there is none');
    const [is, expected] = [this.#stored(state), this.#expected(state)];
    for (const [what, each] of Object.entries(is)) {
      same(`${what} as by the model`, each, expected[what]);
    }
    const isKept = this.#model.instance.waiting + after.holds.size + this.#closedMillis > 0;
    if (run.script === 'check' && !isKept && state.pausedUntil === 0) {
      const isIdle = [-1, 0].map((at) => this.#model.instance.isIdle(state.expires + at));
      same('a key stays until the last of its windows ends', isIdle, [false, true]);
    }
    this.#compareReports(state);
  }

  /** Nothing is compared after it, since it gives all approvals back. */
  #compareReports(state: StoredState): void {
    const { run, stored } = this.call;
    const reports = [stored.state, state].flatMap((each) => (each ? reportsOf(each) : []));
    const ends = reports.flatMap((report) => report?.until ?? []);
    if (ends.length === 0 && run.script !== 'remaining') return;
    const times = ends.filter((end) => end > this.#now).flatMap((end) => [end - 1, end]);
    const ids = [...this.#ids, ...this.#heldIds];
    const [is, expected] = [this.#readBack(state), this.#model].map((model) =>
      model.usedWithout(this.#now, ids, times),
    );
    same('a report counts until its end, whatever is given back,', is, expected);
  }

  /** What Redis has. */
  #stored(state: StoredState): Record<string, unknown> {
    const { stored, after, approved, beginsKey } = this.call;
    const { overridden, nextWindow, window } = state;
    const names = state.further.map(({ name }) => name);
    const limits = [after.requests, ...names.map((name) => after.limits.get(name))];
    const readBack = this.#readBack(state);
    // What a key had that was idle stays until it expires.
    const furtherBefore = beginsKey ? [] : stored.state!.further;
    const gone = furtherBefore.flatMap(({ name, stored: counts }) => {
      const index = names.indexOf(name);
      const isLeft =
        index === -1
          ? after.limits.has(name)
          : counts && this.#isFixed(index + 1) && hasSecondGeneration(after, name);
      return isLeft ? [name] : [];
    });
    // What is left of a state that was lost stays as well.
    if (stored.state?.stored && this.#isFixed(0) && hasSecondGeneration(after)) gone.push('own');
    const isSet = overridden.includes('window') || nextWindow > 0;
    const live = [...after.holds.values()];
    const known = requestsKnown(after);
    return {
      'who is approved': approved.toSorted(),
      'limits are': limitsOf(state, this.#now).map((limit, i) =>
        named(this.#isFixed(i) ? limit : readBack.instance.inspect(this.#now).limits[i]!),
      ),
      'approvals count until': readBack.roomOfLimits(this.#now).filter((_, i) => !this.#isFixed(i)),
      'places are': state.queueMax,
      'requests have set limits': {
        maxRequests: overridden.includes('max'),
        maxRequestsInQueue: overridden.includes('queueMax'),
        windowMillis: isSet,
      },
      // Without a length that a request has set, rules decide at the boundary.
      'the next window is': isSet && (nextWindow || window),
      'denials count': state.denied,
      'the key is paused': !this.#isRecovering && state.pausedUntil,
      'approvals count': this.#ids.map((id) => {
        const taken = readBack.takenBy(id);
        return [id, limits.map((ids, i) => (this.#isFixed(i) ? ids?.get(id) : taken[i]))];
      }),
      'what is left of limits that are gone is': gone,
      'approvals are held': this.#heldIds.map((id) => [id, after.holds.get(id)?.hits]),
      'holds lapse': this.#lapses.map((at) => live.filter((hold) => hold.lapsesAt > at).length),
      'requests are': this.#namedIds.map((id) => [id, ownedBy(known.get(id))]),
      'lists are': storedLists(withRestoredHeads(after)),
      'who waits': [...after.waiting].flatMap(([id, waiter]) =>
        this.#counts(id) ? shown(id, waiter) : [],
      ),
      // The last one, since it changes the limits.
      'approvals count at a higher maximum': readBack.usedAtHigherMaximum(this.#now),
    };
  }

  /** The same of the model. */
  #expected(state: StoredState): Record<string, unknown> {
    const { run, stored } = this.call;
    const { instance, granted } = this.#model;
    const now = this.#now;
    const is = instance.inspect(now);
    const isSameWindow = stored.state?.born === state.born && now < windowEnd(stored.state);
    const { holds } = instance.approvals;
    const gone = [...granted, ...(run.script === 'check' ? [] : withdrawnBy(this.call))];
    const stayed = [...this.#waiting].filter(([id]) => !this.#ended.has(id));
    const waiting = [...stayed, ...this.#joined].filter(([id]) => !gone.includes(id));
    return {
      'who is approved': [...this.#approved, ...granted].toSorted(),
      'limits are': is.limits.map(named),
      'approvals count until': this.#model.roomOfLimits(now).filter((_, i) => !this.#isFixed(i)),
      'places are': is.maxRequestsInQueue,
      'requests have set limits': instance.examine(now, 0).overridden,
      'the next window is':
        (state.overridden.includes('window') || state.nextWindow > 0) &&
        instance.inspect(windowEnd(state)).limits[0].windowMillis,
      'denials count': (isSameWindow ? stored.state.denied : 0) + (run.isSentAgain ? 0 : is.denied),
      'the key is paused': !this.#isRecovering && is.pausedMillis && now + is.pausedMillis,
      'approvals count': this.#ids.map((id) => [id, this.#model.takenBy(id)]),
      'what is left of limits that are gone is': [],
      'approvals are held': this.#heldIds.map((id) => [id, this.#model.hitsHeld(id)]),
      'holds lapse': this.#lapses.map((at) => [...(holds?.held(at) ?? [])].length),
      'requests are': this.#namedIds.map((id) => [id, this.#model.recordOf(id)]),
      'lists are': listsOf(this.#model.queue),
      'who waits': waiting.flatMap(([id, waiter]) =>
        shown(id, { ...(this.#takers.get(id) ?? waiter), list: waiter.list }),
      ),
      // The last one, since it changes the limits.
      'approvals count at a higher maximum': this.#model.usedAtHigherMaximum(now),
    };
  }

  /** What the call has left, as the embedded limiter reads it. */
  #readBack(state: StoredState): Model {
    return Model.restored({ ...this.call.after, state }, new Map(), FOREVER);
  }

  /** Whether the limit is a fixed window, which is compared as it is stored. */
  #isFixed(index: number): boolean {
    const { stored, further } = this.call.after.state!;
    return (index === 0 ? stored : further[index - 1]?.stored) === undefined;
  }

  /** All that count in a limit before or after the call. */
  get #ids(): string[] {
    const { stored, after } = this.call;
    const ids = [stored, after].flatMap(({ requests, limits }) => [
      ...requests.keys(),
      ...after.state!.further.flatMap(({ name }) => [...(limits.get(name)?.keys() ?? [])]),
    ]);
    return [...new Set(ids)];
  }

  /** Of the requests with ids of their callers, but for those of dead replicas, which may be forgotten or not. */
  get #namedIds(): string[] {
    const ids = [this.#known, requestsKnown(this.call.after)].flatMap((each) => [...each.keys()]);
    return [...new Set(ids)].filter((id) => this.#counts(id));
  }

  get #heldIds(): string[] {
    return [...this.call.stored.holds.keys(), ...this.call.after.holds.keys()];
  }

  /** The times at which holds lapse, and those just before. */
  get #lapses(): number[] {
    return [...this.call.after.holds.values()].flatMap(({ lapsesAt }) => [lapsesAt - 1, lapsesAt]);
  }

  /** Others, those of dead replicas, may be there or not. */
  #counts(id: string): boolean {
    return this.#waiting.has(id) || this.#joined.has(id) || !this.call.stored.waiting.has(id);
  }
}

/** Whether there are ids of a generation that a fixed window does not have: of a further limit, or of the own one. */
function hasSecondGeneration(snapshot: Snapshot, further?: string): boolean {
  const index = LIMIT_NAMES.findIndex((name) => name === further);
  return generationsOf(snapshot, index + 1)[1]!.size > 0;
}

/** A reply that is a ticket; undefined for another. */
function ticketIn(reply: unknown): number | undefined {
  return Number(reply) > VERDICT.approved ? Number(reply) : undefined;
}

/** As the embedded limiter tells it. */
function ownedBy(request: StoredRequest | undefined): ModelRecord | undefined {
  if (!request) return undefined;
  const { is, hits, holdMillis, owner } = request;
  return { state: is, hits, holdMillis, holder: undefined, owner: numberOf(owner) };
}

function shown(
  id: string,
  {
    hits,
    holdMillis,
    keepMillis,
    list,
  }: Pick<ModelWaiter, 'hits' | 'holdMillis' | 'keepMillis' | 'list'>,
): unknown[] {
  return [{ id, hits, holdMillis, keepMillis, list: list && keptList(list) }];
}

function amendmentIn([, hits, holdMillis, maxHits, maxHoldMillis]: readonly string[]): Amendment {
  const number = (text: string | undefined): number | undefined =>
    text ? Number(text) : undefined;
  return {
    hits: number(hits),
    holdMillis: number(holdMillis),
    maxHits: number(maxHits),
    maxHoldMillis: number(maxHoldMillis),
  };
}

function reportIn([limit, remaining, resetMillis]: readonly string[]): RemainingReport {
  return {
    limit: limit === '' ? undefined : limit,
    remaining: Number(remaining),
    resetMillis: resetMillis ? Number(resetMillis) : undefined,
  };
}

function amendmentReply(outcome: AmendOutcome): number {
  if (outcome === 'unknown' || outcome === 'store_full') return AMEND_REPLY.notFound;
  if (!('rejected' in outcome)) return outcome.holdMillis ?? AMEND_REPLY.ofWindow;
  return outcome.rejected === 'hold'
    ? AMEND_REPLY.holdTooLong
    : AMEND_REPLY.tooManyHits - outcome.maxHits;
}

/** The limits that a state has, as the model tells its own. */
function limitsOf(state: StoredState, now: number): LimitState[] {
  const { start, approved, window, max, algorithm, report } = state;
  const own = { start, taken: approved, report, ...ownLimit(window, max, algorithm) };
  const further = state.further.map(({ start, taken, report, stored: _, ...limit }) => ({
    ...{ start, taken, report },
    ...furtherLimit(limit),
  }));
  return [own, ...further].map(({ start, taken, report, ...limit }) => {
    const timed = { start, window: limit.windowMillis, algorithm: limit.algorithm, report };
    return {
      ...limit,
      windowMillis: windowLength(timed),
      used: taken,
      millisToWindowEnd: windowEnd(timed) - now,
    };
  });
}

/** The same with the name of its calendar. */
function named({ algorithm, ...limit }: LimitState): unknown {
  const calendar = calendarOf({ algorithm });
  const { lanes, perGroup } = limit;
  return { ...limit, lanes, perGroup, algorithm: calendar ? textOfCalendar(calendar) : algorithm };
}

function quotas({ limits }: Quota): unknown[] {
  return limits.map(({ name, windowMillis, remaining, resetMillis }) => [
    name,
    windowMillis,
    remaining,
    resetMillis,
  ]);
}

/** @throws Violation if a script has not done what the model does */
function same(rule: string, is: unknown, expected: unknown): void {
  if (isDeepStrictEqual(is, expected)) return;
  throw new Violation(rule, `${JSON.stringify(is)}, not ${JSON.stringify(expected)}`);
}

/** The newest check of each request with an id of its caller that a settle asks about, by that id. */
function newestChecks({ waiters }: Pick<ScriptRun, 'waiters'>): Map<string, WaiterRun> {
  const newest = new Map<string, WaiterRun>();
  for (const waiter of waiters.values()) {
    const { id, owner } = waiter;
    if (owner === undefined) continue;
    const before = newest.get(id)?.owner;
    if (before === undefined || numberOf(before) < numberOf(owner)) newest.set(id, waiter);
  }
  return newest;
}

/**
 * Those of them that get the undecided requests of earlier checks of their replica: a call of an earlier check, or one that put
 * its place back, has come later than the take-over.
 * @param known the requests that Redis knows
 */
function laterChecks(
  run: Pick<ScriptRun, 'waiters' | 'replica'>,
  known: ReadonlyMap<string, StoredRequest>,
): Map<string, WaiterRun> {
  const later = [...newestChecks(run)].filter(([id, { owner = '' }]) => {
    const record = known.get(id);
    if (record?.is !== 'waiting' && record?.is !== 'granted') return false;
    const isOfReplica = record.owner.startsWith(`${run.replica}#`);
    return isOfReplica && numberOf(record.owner) < numberOf(owner);
  });
  return new Map(later);
}

/** Requests that belong to later checks now. */
function withLaterOwners(
  known: ReadonlyMap<string, StoredRequest>,
  later: ReadonlyMap<string, WaiterRun>,
): ReadonlyMap<string, StoredRequest> {
  const taken = [...later].map(([id, { owner = '', keepMillis }]) => {
    return [id, { ...known.get(id)!, owner, keepMillis }] as const;
  });
  return new Map([...known, ...taken]);
}

const LEAST_BETWEEN_SETTLES = luaNumber('lib/room', 'LEAST_BETWEEN_SETTLES');
const RULES_STAY_MILLIS = luaNumber('lib/in-force', 'RULES_STAY_MILLIS');

/**
 * Whether the stored state does not tell the model all that decides a call: after a loss of memory, and where batches of one
 * call change what the next ones go by. The next call is judged by what is stored then.
 */
function isExcused(call: JudgedCall): boolean {
  const { run, stored, after, approved } = call;
  const { now, batches, script } = run;
  const { state } = after;
  // A replica tells what it knows of a key that Redis has lost.
  if (state && run.lowestTicket < state.born * 1000) return true;
  // A length that a replica has told of counts from the next window on, also if it is the one of this window.
  if (stored.state && stored.state.nextWindow === stored.state.window) return true;
  // After a step of Redis's clock. The clock of the embedded limiter never goes back.
  if (hasLaterApprovals(stored) || hasLaterApprovals(after)) return true;
  const wasIdle = isIdle(stored, now);
  // Of a key that is begun again by a call that puts waiters back, or that shows that Redis was down.
  if (wasIdle && (script === 'settle' || (state?.recoveryUntil ?? 0) > now)) return true;
  // It keeps its distance from the last grant, which the model has forgotten.
  if (call.beginsKey && (stored.state?.served ?? 0) + LEAST_BETWEEN_SETTLES > now) return true;
  // A settle that was under way puts back a waiter that was told meanwhile, whose approval a limit may keep.
  const counted = [...stored.limits.values()];
  const isTwice = (id: string) => stored.waiting.has(id) && counted.some((ids) => ids.has(id));
  if (script === 'amend' && run.requestIds.some(isTwice)) return true;
  // A key that was idle may leave records of requests with ids of their callers, or not.
  const areRemembered = requestsKnown(stored).size === 0 || now < (stored.state?.ends ?? 0);
  if (call.beginsKey && !areRemembered) return true;
  // Rules that come into force with one batch are newer than those of the next.
  if (new Set(batches.map(({ rules }) => JSON.stringify(rules))).size > 1) return true;
  // One batch may set what the ceilings of the next drop. Then other rules, or those of now, are in force in between.
  const hasCeilings = batches.some((batch) => batch.rules.ceilings?.windowMillis !== Infinity);
  if (batches.length > 1 && hasCeilings) return true;
  // The first check that joins the queue renews the lease of its replica, whose other waiters count for the next check.
  const hasLapsed = idsOf(stored, run.replica).some((id) => stored.leases[id]! <= now);
  if (hasLapsed && script === 'check' && run.requestIds.length > 1) return true;
  if (hasDeadInLists(call)) return true;
  const dead = [...stored.waiting].filter(([, place]) => !countsAt(stored, place, now));
  // The place of a dead replica counts again from the check on that asks for it, and not for checks before.
  const later = verdictsIn(call).slice(1);
  if (dead.some(([id]) => later.some(([check]) => check.id === id))) return true;
  // A place that has outlived its longest wait and its replica takes room in the queue until its turn.
  if (dead.some(([, place]) => hasLease(stored, place, now))) return true;
  if (haveGroupsToWait(stored)) return true;
  // `GroupsSeen` judges what groups have to themselves.
  if ([stored, after].some(haveLimits) || (script === 'pause' && run.own[2] !== '')) return true;
  // The key had forgotten the approval, but a limit has not. It counts there once.
  const ofOwn = stored.state?.stored ? [stored.requests] : [];
  const known = [...ofOwn, ...stored.limits.values()].flatMap((ids) => [...ids.keys()]);
  const named = requestsKnown(stored);
  const renewed = verdictsIn(call).filter(([{ id, owner }, verdict]) => {
    return owner !== undefined && verdict === VERDICT.approved && !named.has(id);
  });
  return [...approved, ...renewed.map(([{ id }]) => id)].some((id) => known.includes(id));
}

/** Whether groups that have been served wait behind waiters without a list, as after a loss of heads. */
function haveGroupsToWait(stored: Snapshot): boolean {
  const { kinds, virtualTime } = withRestoredHeads(stored).lists;
  const [fifo, group] = [kinds.indexOf('fifo'), kinds.indexOf('group')];
  return virtualTime > 0 && fifo >= 0 && fifo < group;
}

/** Whether places of dead replicas wait in one of several lists: they count there until their turns. */
function hasDeadInLists({ run, stored, after }: JudgedCall): boolean {
  const hasLists = [stored, after].some(({ lists }) => lists.kinds.length > 0);
  if (!hasLists || (after.state?.recoveryUntil ?? 0) > run.now) return false;
  return [...stored.waiting.values()].some((place) => !countsAt(stored, place, run.now));
}

/** Whether a token bucket has approvals that are later than its level. */
function hasLaterApprovals(snapshot: Snapshot): boolean {
  const { state } = snapshot;
  if (!state) return false;
  const limits = [{ name: undefined, stored: state.stored }, ...state.further];
  return limits.some(({ name, stored }) => {
    if (stored?.kind !== 'token_bucket') return false;
    const index = name === undefined ? 0 : 1 + LIMIT_NAMES.findIndex((each) => each === name);
    const ids = generationsOf(snapshot, index).flatMap((each) => [...each.values()]);
    return ids.some(({ mark }) => mark > stored.timeMicros);
  });
}

/** Whether the rules of a caller may be older than the limits in force, which stay then for some time. */
function hasOlderRules({ rulesLoadedAt, now }: ScriptRun, state: Snapshot['state']): boolean {
  const since = Math.min(state?.limitsSince ?? 0, now);
  return rulesLoadedAt < since && now < since + RULES_STAY_MILLIS;
}
