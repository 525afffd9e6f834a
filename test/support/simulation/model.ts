import type { Amendment, KeyLimits } from '../../../src/limiter/limiter.js';
import { type Limit, ownLimit } from '../../../src/limiter/limits.js';
import { type AmendOutcome, Approvals } from '../../../src/limiter/memory/approvals.js';
import type {
  InstanceDecision,
  RecordDecision,
} from '../../../src/limiter/memory/instance-decision.js';
import { Instance } from '../../../src/limiter/memory/instance.js';
import { UNBOUNDED } from '../../../src/limiter/memory/keys.js';
import { NamedRequests } from '../../../src/limiter/memory/named-requests.js';
import type { CountedLimit } from '../../../src/limiter/memory/limits/counted-limit.js';
import { FixedWindow } from '../../../src/limiter/memory/limits/fixed-window.js';
import { MemoryBudget } from '../../../src/limiter/memory/memory-budget.js';
import { WaitingQueue } from '../../../src/limiter/memory/queue/waiting-queue.js';
import type { QueueList } from '../../../src/limiter/queue-order.js';
import type { RequestState } from '../../../src/limiter/request.js';
import { furtherLimit } from '../limits.js';
import type { StoredReport } from '../stored-counts.js';
import { listOf } from '../stored-queue.js';
import { reportsOf, type StoredState } from '../stored-state.js';
import { idOf, numberOf, uuidOf } from './model-ids.js';
import { restoreLimits } from './model-limits.js';
import { restoreLists } from './model-lists.js';
import { KEY } from './replica.js';
import type { CheckBatchRun, CheckRun, Claimed, WaiterRun } from './script-run.js';
import type { Snapshot } from './snapshot.js';
import type { StoredRequest } from './stored-requests.js';

/** A check that waits for as long as it takes. */
const WAITS = { canWait: true, noPlace: false, maxWaitMillis: Infinity } as const;
/** Before all that is stored, so that nothing ends at this time. */
const LONG_AGO = 0;
/** Longer than anything lasts. */
const FOREVER = 1e15;
/** More than anything takes that is stored, and less than the hits of a check that only sets limits. */
const EVERYTHING = Number.MAX_SAFE_INTEGER;

/** How many hits are waited for before another one. */
const MORE = [0, 1, 2, 3, 4, 6, 8];

/** A waiter, by its id. */
export type ModelWaiter = Pick<
  WaiterRun,
  'hits' | 'holdMillis' | 'keepMillis' | 'owner' | 'list' | 'ticket'
>;

/** What the model knows of a request whose caller has chosen the id, with the state as Redis names it. */
export interface ModelRecord extends Pick<StoredRequest, 'hits' | 'holdMillis'> {
  readonly state: StoredRequest['is'];
  readonly holder: string | undefined;
  readonly owner: number;
}

const STORED_STATES: Partial<Record<RequestState, StoredRequest['is']>> = {
  waiting: 'waiting',
  unclaimed: 'granted',
  approved: 'approved',
  held: 'approved',
};

/** Requests of a key, whose queue can be looked at. */
class RequestsOfModel extends NamedRequests {
  queueOfKey = new WaitingQueue(0);

  override continueWith(approvals: Approvals, queue: WaitingQueue): void {
    this.queueOfKey = queue;
    super.continueWith(approvals, queue);
  }
}

/** What the embedded limiter makes of a key: the model of the rules. Ids are those of the simulation. */
export class Model {
  /** The ids that were approved from the queue, in their order. */
  readonly granted: string[] = [];
  readonly #policy: { current: KeyLimits };
  readonly #instance: Instance;
  readonly #requests: RequestsOfModel;
  #rules: KeyLimits;

  /** @param known the requests with ids of their callers. Those that wait, and those that are granted, are added later */
  private constructor(start: number, rules: KeyLimits, known: ReadonlyMap<string, StoredRequest>) {
    this.#policy = { current: rules };
    this.#rules = rules;
    const onGrant = (uuids: readonly string[]): void => {
      this.granted.push(...uuids.map(idOf));
    };
    const budget = new MemoryBudget(Infinity);
    const approvals = new Approvals(start, rules.limits, UNBOUNDED, budget);
    this.#requests = new RequestsOfModel(approvals, new WaitingQueue(0));
    const requests = this.#requests;
    for (const [id, { is, hits, holdMillis, owner }] of known) {
      if (is === 'waiting' || is === 'granted') continue;
      requests.add(uuidOf(id), { hits, holdMillis }, numberOf(owner));
      // Redis says how long they are remembered.
      requests.approve(FOREVER, uuidOf(id));
      if (is === 'released') requests.become(FOREVER, uuidOf(id), 'released');
    }
    this.#instance = new Instance(KEY, start, this.#policy, UNBOUNDED, budget, onGrant, requests);
  }

  /** A key that there was not. */
  static begun(now: number, rules: KeyLimits, known: ReadonlyMap<string, StoredRequest>): Model {
    return new Model(now, rules, known);
  }

  /**
   * A key as Redis has stored it.
   * @param waiters those that count, in their order
   * @param closedUntil until when nobody is approved
   * @param known the requests with ids of their callers
   */
  static restored(
    stored: Snapshot & { readonly state: StoredState },
    waiters: ReadonlyMap<string, ModelWaiter>,
    closedUntil: number,
    known: ReadonlyMap<string, StoredRequest> = new Map(),
  ): Model {
    const { state } = stored;
    const inForce = rulesInForce(state);
    const unbounded = inForce.limits.map(withoutBounds);
    const rules = { limits: asLimits(unbounded), maxRequestsInQueue: EVERYTHING };
    const model = new Model(state.start, { ...rules, limits: [rules.limits[0]] }, known);
    if (state.served > 0) model.#serve(state.served);
    restoreApprovals(model.#instance.approvals, stored, unbounded.slice(1));
    model.#grant(known);
    model.#policy.current = rules;
    model.#instance.settle(LONG_AGO);
    model.#instance.pause(LONG_AGO, closedUntil - LONG_AGO);
    for (const [id, { hits, holdMillis, keepMillis, owner, list }] of waiters) {
      // It may be put back to a group that has more waiters than its rules say.
      const unbounded = list?.kind === 'group' ? { ...list, maxRequests: undefined } : list;
      model.check(LONG_AGO, { ...WAITS, id, owner, hits, holdMillis, keepMillis, list: unbounded });
    }
    // Also one list: waiters joined with tickets of the beginning of the window, and a newcomer must not come before them.
    if (waiters.size > 0) restoreLists(model.queue, waiters, stored);
    (model.queue as { lastTicket: number }).lastTicket = state.ticket || 1000 * state.born;
    model.#policy.current = inForce;
    model.#instance.settle(LONG_AGO);
    const { overridden, window, nextWindow, max, queueMax } = state;
    const set = (overrides: Partial<CheckBatchRun['overrides']>): void => {
      model.#setLimits(LONG_AGO, overrides);
    };
    if (overridden.includes('window')) set({ windowMillis: window });
    if (nextWindow > 0) set({ windowMillis: nextWindow });
    if (overridden.includes('max')) set({ maxRequests: max });
    if (overridden.includes('queueMax')) set({ maxRequestsInQueue: queueMax });
    restoreLimits(model.#instance.approvals, stored, inForce.limits);
    return model;
  }

  /** The rules that come into force as soon as they may. */
  set rules(rules: KeyLimits) {
    this.#policy.current = rules;
    this.#rules = rules;
  }

  get queue(): WaitingQueue {
    return this.#requests.queueOfKey;
  }

  /** Everything that can be asked of an instance. */
  get instance(): Omit<Instance, 'check' | 'release' | 'withdraw' | 'amend' | 'claim'> {
    return this.#instance;
  }

  /** What a batch of checks does before its first one is decided: it sets limits, and ceilings drop them, once. */
  begin(now: number, { overrides }: CheckBatchRun): void {
    this.#policy.current = this.#rules;
    this.#setLimits(now, overrides);
    this.#policy.current = { ...this.#rules, ceilings: undefined };
  }

  check(now: number, { id, owner, ...check }: CheckRun): InstanceDecision | RecordDecision {
    const request = { key: KEY, ...check };
    return owner === undefined
      ? this.#instance.check(now, uuidOf(id), request)
      : this.#instance.check(now, uuidOf(id), request, numberOf(owner));
  }

  /** What it knows of a request whose caller has chosen the id. */
  recordOf(id: string): ModelRecord | undefined {
    const record = this.#requests.recordAt(LONG_AGO, uuidOf(id), true);
    if (!record) return undefined;
    const { state, owner, request } = record;
    const { hits = 1, holdMillis, holder } = request;
    return { state: STORED_STATES[state] ?? 'released', hits, holdMillis, holder, owner };
  }

  release(now: number, id: string, isUnused: boolean): boolean {
    return this.#instance.release(now, uuidOf(id), isUnused);
  }

  /** A waiter that is decided again may still have what a limit keeps of an approval that Redis has forgotten. */
  withdraw(now: number, { id, owner }: Claimed): void {
    const number = owner === undefined ? undefined : numberOf(owner);
    const record = this.recordOf(id);
    // What it has forgotten does not belong to the check any more.
    if (number !== undefined && (record?.owner !== number || record.state === 'released')) return;
    this.#instance.withdraw(now, uuidOf(id), number);
    this.#instance.release(now, uuidOf(id), true);
  }

  /**
   * A check gets the approval that is held for it.
   * @returns whether its caller may be told; also if the check has got it before
   */
  claim(now: number, { id, owner = '' }: Claimed): boolean {
    const number = numberOf(owner);
    const record = this.recordOf(id);
    if (record?.state === 'approved' && record.owner === number) return true;
    return this.#instance.claim(now, uuidOf(id), number) === 'claimed';
  }

  amend(now: number, id: string, amendment: Amendment): AmendOutcome {
    return this.#instance.amend(now, uuidOf(id), amendment);
  }

  /** What an approval takes of each limit, other than as a held one. */
  takenBy(id: string): (number | undefined)[] {
    return this.#instance.approvals.limits.map((limit) => limit.takenBy(uuidOf(id)));
  }

  /** When what counts of each limit ends to count that is no fixed window: the times until more and more hits fit. */
  roomOfLimits(now: number): unknown[] {
    return this.#instance.approvals.limits.map((limit) => {
      limit.roll(now, limit.millis);
      const turns = MORE.map((hits) => limit.millisToTurn(now, hits, 1, limit.millis));
      return [limit.used, limit.exactUsed, ...turns];
    });
  }

  /** Raises the maximum of each token bucket. Returns what counts then, with the excess. */
  usedAtHigherMaximum(now: number): number[] {
    const { limits } = this.#instance.approvals;
    const buckets = limits.filter(({ hasPace }) => hasPace);
    return buckets.map((limit) => {
      limit.roll(now, limit.millis);
      limit.maximum = EVERYTHING;
      return limit.exactUsed;
    });
  }

  /**
   * What counts of each limit with fixed windows at these times, and what would count if these approvals were given back:
   * they are. A report shows in both.
   */
  usedWithout(now: number, ids: readonly string[], times: readonly number[]): unknown[] {
    const { approvals } = this.#instance;
    const windows = approvals.limits.filter((limit) => limit instanceof FixedWindow);
    const later = times.map((at) => windows.map((limit) => limit.state(at).used));
    for (const id of ids) approvals.release(now, uuidOf(id), true);
    return [...later, windows.map(({ used }) => used)];
  }

  hitsHeld(id: string): number | undefined {
    const hold = this.#instance.approvals.holds?.get(uuidOf(id));
    return hold && (hold.request.hits ?? 1);
  }

  /** Adds the records of the requests whose approvals are kept for their callers, by holds that there are. */
  #grant(known: ReadonlyMap<string, StoredRequest>): void {
    for (const [id, { is, hits, holdMillis, owner }] of known) {
      if (is !== 'granted') continue;
      this.#requests.add(uuidOf(id), { hits, holdMillis }, numberOf(owner));
      this.#requests.become(LONG_AGO, uuidOf(id), 'waiting');
      this.#requests.become(LONG_AGO, uuidOf(id), 'unclaimed');
    }
  }

  /** Somebody is approved from the queue at this time, which leaves nothing but that time. */
  #serve(now: number): void {
    const instance = this.#instance;
    const window = instance.approvals.window;
    const { start, millis } = window;
    window.restart(LONG_AGO, FOREVER);
    instance.pause(now - 1, 1);
    instance.check(now - 1, uuidOf('?'), { key: KEY, canWait: true });
    instance.settle(now);
    for (const limit of instance.approvals.limits) limit.giveBack(uuidOf('?'), true);
    window.restart(start, millis);
    this.granted.length = 0;
  }

  /** A check of more hits than there can be is rejected, after it has set limits and served the queue. */
  #setLimits(now: number, overrides: Partial<CheckBatchRun['overrides']>): void {
    this.#instance.check(now, '', { key: KEY, ...overrides, canWait: false, hits: Infinity });
  }
}

/** The limits of a key, as the rules that stay in force if no others may come. */
export function rulesInForce({
  window,
  max,
  queueMax,
  algorithm: ofOwn,
  further,
}: StoredState): KeyLimits {
  const limits = further.map(
    ({ name, windowMillis, maximum, algorithm, counts, keepsReleased, lanes }) =>
      furtherLimit({
        ...{ name, windowMillis, maximum, algorithm, counts, keepsReleased },
        ...(lanes && { lanes }),
      }),
  );
  return { limits: [ownLimit(window, max, ofOwn), ...limits], maxRequestsInQueue: queueMax };
}

function withoutBounds({ algorithm, ...limit }: Limit): Limit {
  const isBucket = algorithm.name === 'token_bucket';
  return {
    ...limit,
    maximum: EVERYTHING,
    algorithm: isBucket ? { ...algorithm, burst: EVERYTHING } : algorithm,
  };
}

function asLimits([own, ...further]: readonly Limit[]): KeyLimits['limits'] {
  return [own!, ...further];
}

const OTHER = uuidOf('?');

/**
 * Gives a key of the embedded limiter the approvals that Redis has stored, but for those in limits that are no fixed
 * windows: `restoreLimits` gives it these.
 * @param approvals of a key with its own limit, of which there are none
 * @param further limits, whose maxima are more than approvals take
 */
function restoreApprovals(
  approvals: Approvals,
  stored: Snapshot & { readonly state: StoredState },
  further: readonly Limit[],
): void {
  const { state } = stored;
  if (state.released > 0) {
    approvals.add(state.released, OTHER, {});
    approvals.release(state.released, OTHER, true);
  }
  const [ofOwn, ...ofFurther] = reportsOf(state);
  restoreReport(approvals.own, ofOwn);
  for (const [i, { start }] of state.further.entries()) {
    approvals.takeFurther(start, further.slice(0, i + 1));
    // Before the next limit, which may have begun when this window would have ended without the report.
    restoreReport(approvals.limits[i + 1]!, ofFurther[i]);
  }
  restoreHolds(approvals, stored);
  const used = [state.approved, ...state.further.map(({ taken }) => taken)];
  const counts = [state.stored, ...state.further.map((limit) => limit.stored)];
  for (const [i, limit] of approvals.limits.entries()) {
    if (counts[i]) continue;
    const ids = i === 0 ? stored.requests : stored.limits.get(state.further[i - 1]!.name);
    for (const [id, hits] of ids ?? []) {
      // One with no hits was corrected.
      limit.take(uuidOf(id), 1, false);
      limit.reserve(uuidOf(id), hits);
      limit.amend(uuidOf(id), hits);
    }
    if (limit.used > used[i]!) limit.refund(limit.used - used[i]!);
    // Approvals of which Redis does not know the ids, as of a key that was restored.
    for (let n = 0; limit.used < used[i]!; n += 1) {
      limit.take(uuidOf(`?${n}`), used[i]! - limit.used, false);
    }
  }
}

/** @param limit of which nothing counts */
function restoreReport(limit: CountedLimit, report: StoredReport | undefined): void {
  if (!report || !(limit instanceof FixedWindow)) return;
  const { surplus, floor, until } = report;
  // Meanwhile, as much counts as leaves the surplus missing from the floor.
  limit.carry(floor - surplus);
  limit.report(0, { remaining: limit.maximum - floor, resetMillis: until });
  limit.carry(surplus - floor);
}

/** Also of approvals that have lapsed, whose waiters are put back. */
function restoreHolds(approvals: Approvals, { state, holds, records }: Snapshot): void {
  const hold = (id: string, now: number, hits: number, millis: number, list?: QueueList): void => {
    const record = records.get(idOf(id));
    if (record?.state === 'unclaimed') {
      const { holdMillis } = record;
      approvals.addWaiter(now, { requestId: id, hits, holdMillis, list, keepMillis: millis });
    } else {
      approvals.add(now, id, { hits, holdMillis: millis, list });
    }
    for (const limit of approvals.limits) limit.giveBack(id, true);
  };
  for (const [id, { lapsesAt, millis, hits, lane }] of holds) {
    const list = lane === undefined ? undefined : listOf(`lane:${lane}`, 0);
    hold(uuidOf(id), lapsesAt - millis, hits, millis, list);
  }
  if (!state?.holds || holds.size === 0) return;
  // The first of them may have been released, which leaves the time of the first lapse as it was.
  hold(OTHER, state.holds.firstLapse - 1, 1, 1);
  approvals.holds?.release(OTHER);
}
