/* eslint-disable @typescript-eslint/require-await -- as the interface has it */
import type { Clock } from '../../common/clock.js';
import { endOfTick, inTicks } from '../../common/ticks.js';
import { newUuid } from '../../common/uuid.js';
import { type CallerPresence, nextClaimNumber, parseClaim } from '../request.js';
import { StoreFullError, UnavailableError } from '../errors.js';
import { findHeld, type HeldApproval, toHoldings } from '../holdings.js';
import type {
  Answer,
  ApprovalObserver,
  Asked,
  CheckRequest,
  Decision,
  InstanceState,
  KeyLimits,
  Limiter,
  OperationFunctions,
  OperationName,
  Policies,
  StoreCondition,
} from '../limiter.js';
import { decisionOf, rejectionOf } from './instance-decision.js';
import { settleDelay } from '../settle-delay.js';
import { Waiter } from '../waiter.js';
import { Instance } from './instance.js';
import { inPages, KeptPolicy, KeyMap, type MemoryBounds, Sweep, UNBOUNDED } from './keys.js';
import { bytesOf, MemoryBudget, UNBOUNDED_BUDGET } from './memory-budget.js';
import { Waits } from './waits.js';

interface Entry<Policy extends KeyLimits> {
  readonly instance: Instance;
  readonly policy: KeptPolicy<Policy>;
  /** Set while somebody waits. It serves the queue when there may be room. */
  timer?: { readonly dueAt: number; readonly cancel: () => void } | undefined;
}

/** The embedded limiter. Its whole state is in the memory of this process. */
export class MemoryLimiter<Policy extends KeyLimits = KeyLimits> implements Limiter {
  readonly #entries = new KeyMap<Entry<Policy>>();
  readonly #waits: Waits<Entry<Policy>>;
  #isClosed = false;
  /** Frees idle keys and the ids of ended windows. They stop counting on time also without it. */
  readonly #sweep: Sweep<Entry<Policy>>;

  readonly #bounds: MemoryBounds;
  readonly #budget: MemoryBudget;

  /** @param bounds by default infinite */
  constructor(
    private readonly policies: Policies<Policy>,
    private readonly clock: Clock,
    bounds: Partial<MemoryBounds> = {},
    private readonly observer: ApprovalObserver = { unclaimed: () => undefined },
  ) {
    this.#bounds = { ...UNBOUNDED, ...bounds };
    this.#budget = new MemoryBudget(this.#bounds.maxBytes);
    const now = (): number => this.#now();
    this.#waits = new Waits(this.#bounds.maxWaiters, clock, now, (entry) => {
      this.#settleWhenRoom(entry);
    });
    this.#sweep = new Sweep(this.#entries, clock, (key, entry) => {
      this.#free(key, entry);
    });
  }

  waiting(key?: string): number {
    return key === undefined ? this.#waits.size : (this.#entries.get(key)?.instance.waiting ?? 0);
  }

  async check(request: CheckRequest, caller?: CallerPresence): Promise<Decision> {
    if (this.#isClosed) throw new UnavailableError('shutting_down');
    const now = this.#now();
    const entry = this.#find(request.key, now) ?? this.#create(request.key, now);
    const { requestId = newUuid() } = request;
    const number = request.requestId === undefined ? undefined : nextClaimNumber();
    const asked = request.canWait ? this.#waits.withPlace(request, entry, requestId) : request;
    const decision = entry.instance.check(now, requestId, asked, number);
    // A limit that the check sets, or that the rules have now, may make room earlier.
    this.#settleWhenRoom(entry);
    if (decision === 'takes_over' || decision === 'wait_expired') {
      this.#waits.fail(entry, requestId, 'taken_over');
    }
    if (decision === 'waiting' || decision === 'takes_over') {
      request.trace?.queued();
      // A place that was taken over may be in another list.
      const list = entry.instance.listOf(requestId);
      const waiting = list === request.list ? request : { ...request, list };
      const decided = this.#waits.wait(entry, new Waiter(requestId, waiting, number), caller);
      // With a head start it may have come before the waiters of its group, and fit.
      if (list?.kind === 'group' && list.headStartMillis !== undefined) this.#settle(entry);
      return decided;
    }
    const quota = entry.instance.quota(now, request.list);
    const turnMillis =
      decision === 'turn_too_late' ? entry.instance.turns.millisToTurn(now, request) : 0;
    await endOfTick();
    return decisionOf(decision, { requestId, number, quota, turnMillis });
  }

  /** What applies to a key as of now. For an existing key, this takes one look-up in a map. */
  policyOf(key: string): Policy {
    const entry = this.#entries.get(key);
    return entry ? entry.policy.current : this.policies.current.policyOf(key);
  }

  ask<Name extends OperationName>(operation: Name, asked: Asked<Name>): Promise<Answer<Name>> {
    return this.#operations[operation](asked);
  }

  list(): AsyncIterable<readonly InstanceState[]> {
    return inPages(this.#entries.keys(), (key) =>
      this.#look(key, (instance, now) => instance.inspect(now)),
    );
  }

  limitsChanged(): void {
    // There may be far more keys than waiters.
    inTicks([...this.#waits.entries], (entry) => {
      this.#settle(entry);
    });
  }

  ping(): Promise<StoreCondition> {
    const isFull = this.#entries.size >= this.#bounds.maxKeys || this.#budget.isFull;
    return Promise.resolve(isFull ? 'full' : 'ok');
  }

  /** No other process has the places, so that checks that are here wait on. */
  handOver(): void {
    this.#waits.handOver();
  }

  close(): Promise<void> {
    this.#isClosed = true;
    this.#sweep.stop();
    for (const entry of this.#entries.values()) entry.timer?.cancel();
    this.#entries.clear();
    this.#waits.failAll(() => new UnavailableError('shutting_down'));
    return Promise.resolve();
  }

  /** What they change is changed when they return, before their promises resolve. */
  readonly #operations: OperationFunctions = {
    release: async ({ key, requestId, isUnused = false }) =>
      this.#release(key, requestId, isUnused),

    giveBack: async ({ key, claim }) => {
      const { requestId, number } = parseClaim(claim);
      return this.#release(key, requestId, true, number);
    },

    amend: async ({ key, requestId, ...amendment }) => {
      const amended = this.#change(key, ({ instance }, now) =>
        instance.amend(now, requestId, amendment),
      );
      if (amended === 'store_full') throw new StoreFullError();
      return amended === 'unknown' ? undefined : amended;
    },

    pause: async ({ key, millis, canShorten = true, group }) => {
      const now = this.#now();
      const entry = this.#find(key, now) ?? (millis > 0 ? this.#create(key, now) : undefined);
      if (!entry) return 0;
      const pausedMillis = entry.instance.pause(now, millis, canShorten, group);
      this.#settleWhenRoom(entry);
      if (pausedMillis === undefined) throw new UnavailableError('key_full');
      return pausedMillis;
    },

    reportRemaining: async (report) => {
      const { key } = report;
      const now = this.#now();
      const found = this.#find(key, now);
      const rejected = found ? undefined : rejectionOf(this.policyOf(key).limits, report);
      if (rejected) return rejected;
      const entry = found ?? this.#create(key, now);
      const reported = entry.instance.reportRemaining(now, report);
      this.#settleWhenRoom(entry);
      return reported;
    },

    refund: async ({ key, hits, list }) =>
      this.#change(key, ({ instance }, now) => instance.refund(now, hits, list)) ?? 0,

    peek: async (request) => {
      if (this.#isClosed) throw new UnavailableError('shutting_down');
      const now = this.#now();
      const entry = this.#entries.get(request.key);
      const isFound = entry?.instance.isIdle(now) === false;
      const instance = isFound ? entry.instance : this.#instanceToPeek(request.key, now, entry);
      return instance.peek(now, request);
    },

    statusOf: async ({ key, requestId }) => {
      if (this.#isClosed) throw new UnavailableError('shutting_down');
      return this.#entries.get(key)?.instance.statusOf(this.#now(), requestId);
    },

    inspect: async ({ key }) => this.#look(key, (instance, now) => instance.inspect(now)),

    examine: async ({ key, mostQueued }) =>
      this.#look(key, (instance, now) => instance.examine(now, mostQueued)),

    holdings: async ({ key }) => toHoldings(key, this.#held(key)),

    endHold: async ({ key, handle }) => {
      const found = findHeld(key, this.#held(key), handle);
      return found !== undefined && this.#release(key, found.requestId, false);
    },
  };

  #held(key: string): Iterable<HeldApproval> {
    return this.#look(key, ({ approvals }, now) => approvals.holds?.held(now)) ?? [];
  }

  #look<Seen>(key: string, look: (instance: Instance, now: number) => Seen): Seen | undefined {
    const now = this.#now();
    const entry = this.#find(key, now);
    return entry && look(entry.instance, now);
  }

  /** Changes a key that exists. The limit that has room next may be another then, and a hold may lapse earlier. */
  #change<Result>(
    key: string,
    change: (entry: Entry<Policy>, now: number) => Result,
  ): Result | undefined {
    const now = this.#now();
    const entry = this.#find(key, now);
    if (!entry) return undefined;
    const result = change(entry, now);
    this.#settleWhenRoom(entry);
    return result;
  }

  /** Whole milliseconds, as Redis's scripts count them. */
  #now(): number {
    return Math.floor(this.clock.now());
  }

  #find(key: string, now: number): Entry<Policy> | undefined {
    const entry = this.#entries.get(key);
    if (!entry?.instance.isIdle(now)) return entry;
    this.#free(key, entry);
    return undefined;
  }

  /**
   * An instance that a check would create.
   * @param idle the one that a check would remove
   */
  #instanceToPeek(key: string, now: number, idle: Entry<Policy> | undefined): Instance {
    const hasRoom = this.#entries.size < this.#bounds.maxKeys && this.#budget.has(bytesOf(key));
    if (!idle && !hasRoom) throw new StoreFullError();
    const policy = new KeptPolicy(key, this.policies);
    return new Instance(key, now, policy, this.#bounds, UNBOUNDED_BUDGET, () => undefined);
  }

  /** One for all keys: a function takes memory. */
  readonly #onGrant = (requestIds: readonly string[], key: string): void => {
    const entry = this.#entries.get(key);
    if (entry) this.#waits.granted(entry, requestIds);
  };

  /** As above. */
  readonly #onUnclaimed = (): void => {
    this.observer.unclaimed(1);
  };

  #create(key: string, now: number): Entry<Policy> {
    // An idle one is removed, so that there is room for the same key.
    const idle = this.#entries.get(key);
    const named = idle?.instance.takeNamed();
    if (idle) this.#remove(key, idle);
    if (this.#entries.size >= this.#bounds.maxKeys) throw new StoreFullError();
    if (!this.#budget.take(bytesOf(key))) throw new StoreFullError();
    const policy = new KeptPolicy(key, this.policies);
    const bounds = this.#bounds;
    const budget = this.#budget;
    const [onGrant, onUnclaimed] = [this.#onGrant, this.#onUnclaimed];
    const instance = new Instance(key, now, policy, bounds, budget, onGrant, named, onUnclaimed);
    const entry: Entry<Policy> = { instance, policy };
    this.#entries.set(key, entry);
    this.#sweep.start();
    return entry;
  }

  /** Frees what a key does not need any more. An idle key that still remembers requests stays, and nobody sees it. */
  #free(key: string, entry: Entry<Policy>): void {
    const { instance } = entry;
    const now = this.#now();
    instance.forgetEnded(now);
    if (instance.isIdle(now) && !instance.remembersRequests) this.#remove(key, entry);
  }

  #remove(key: string, entry: Entry<Policy>): void {
    entry.timer?.cancel();
    // It remembers no requests then.
    entry.instance.approvals.clear();
    this.#budget.giveBack(bytesOf(key));
    this.#entries.delete(key);
  }

  /**
   * @param isUnused nobody has got the approval
   * @param number of the check that asked for it; by default, of any
   */
  #release(key: string, requestId: string, isUnused: boolean, number?: number): boolean {
    const isReleased = this.#change(key, (entry, now) => {
      const wasKnown = entry.instance.release(now, requestId, isUnused, number);
      // If it waited, it has been withdrawn.
      if (wasKnown) this.#waits.fail(entry, requestId, 'withdrawn');
      return wasKnown;
    });
    return isReleased ?? false;
  }

  /** Serves the queue when the window ends or a hold lapses, whichever comes first, but not all queues at midnight. */
  #settleWhenRoom(entry: Entry<Policy>): void {
    if (entry.instance.waiting === 0) return;
    const { key, turns } = entry.instance;
    // Times of operations are whole milliseconds.
    const roomAt = Math.ceil(turns.exactRoomAt);
    const dueAt = roomAt + settleDelay(key, entry.policy.current.limits, roomAt);
    if (entry.timer?.dueAt === dueAt) return;
    entry.timer?.cancel();
    const cancel = this.clock.after(dueAt - this.clock.now(), () => {
      entry.timer = undefined;
      this.#settle(entry);
    });
    entry.timer = { dueAt, cancel };
  }

  #settle(entry: Entry<Policy>): void {
    // Without waiters, the window ends with the next operation.
    if (entry.instance.waiting === 0 || this.#isClosed) return;
    entry.instance.settle(this.#now());
    this.#settleWhenRoom(entry);
  }
}
