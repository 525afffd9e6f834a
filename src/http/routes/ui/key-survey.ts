import { setTimeout as delay } from 'node:timers/promises';

import type { Logger } from 'pino';

import { type Clock, systemClock } from '../../../common/clock.js';
import { ListingForbiddenError, UnavailableError } from '../../../limiter/errors.js';
import { kindOf } from '../../../limiter/kinds/kinds.js';
import type {
  InstanceState,
  Limiter,
  Operator,
  QueueingReplica,
} from '../../../limiter/limiter.js';
import { capacityOf, type LimitInForce } from '../../../limiter/limits.js';
import type { DeniedKey } from '../../../service/deciding/recent-denials.js';
import type { KeyRates } from '../../../service/fleet/fleet.js';

/**
 * The items with the highest scores of all that are offered. Most offers cost one comparison, since few items get among
 * the highest.
 */
export class Top<T> {
  readonly #top: { readonly item: T; readonly score: number }[] = [];
  /** The score that an item has to exceed, once the list is full. */
  #floor = -Infinity;

  constructor(private readonly most: number) {}

  offer(item: T, score: number): void {
    if (score <= this.#floor) return;
    let index = this.#top.length;
    while (index > 0 && score > (this.#top[index - 1]?.score ?? 0)) index -= 1;
    this.#top.splice(index, 0, { item, score });
    if (this.#top.length > this.most) this.#top.pop();
    if (this.#top.length === this.most) this.#floor = this.#top.at(-1)?.score ?? Infinity;
  }

  /** The highest first; of equal ones, those that were offered first. */
  get items(): T[] {
    return this.#top.map(({ item }) => item);
  }
}

/** What the replicas have decided about a key lately. */
export interface Lately {
  /** The run of its denials, if it is denied now. */
  readonly run: DeniedKey | undefined;
  /** Undefined if it is none of the busiest. */
  readonly rates: KeyRates | undefined;
}

/** How much of a state a key has; 0 if it is not in the state. */
type AmountOf = (state: InstanceState, lately: Lately) => number;

/** A key whose last denial is older was denied: it needs a person less than requests that wait, and holders. */
const DENIED_NOW_MILLIS = 20_000;

/** The states of a key, in the order in which they need a person. A key has any number of them. */
const AMOUNTS = {
  paused: ({ pausedMillis }) => pausedMillis,
  denied: (state, lately) => (isDeniedNow(state, lately) ? denialsOf(state, lately) : 0),
  queue_full: ({ waiting, maxRequestsInQueue }) => (waiting >= maxRequestsInQueue ? waiting : 0),
  waiting: ({ waiting }) => waiting,
  held: ({ held }) => held,
  was_denied: (state, lately) => (isDeniedNow(state, lately) ? 0 : denialsOf(state, lately)),
  used: (state, { rates }) => {
    const approved = rates?.approved ?? 0;
    return approved > 0 || state.limits.some(({ used }) => used > 0) ? approved + fillOf(state) : 0;
  },
} as const satisfies Readonly<Record<string, AmountOf>>;

export type KeyState = keyof typeof AMOUNTS;
export const KEY_STATES = Object.keys(AMOUNTS) as readonly KeyState[];

export function statesOf(state: InstanceState, lately: Lately): KeyState[] {
  return KEY_STATES.filter((name) => AMOUNTS[name](state, lately) > 0);
}

/** How much a key needs a person: by its first state, and of the keys in that state, by about how much. */
export function needOf(state: InstanceState, lately: Lately): number {
  for (const [index, name] of KEY_STATES.entries()) {
    const amount = AMOUNTS[name](state, lately);
    const step = inSteps(amount);
    if (amount > 0) return KEY_STATES.length - index + step / (1 + step);
  }
  return 0;
}

/** The order of an amount among others, in steps of a fifth: keys that are about equal don't change places at each look. */
export function inSteps(amount: number): number {
  return Math.round(4 * Math.log2(1 + amount));
}

/** Of the limit that is fullest: at most 1, also if its maximum was lowered in mid-window. */
export function fillOf({ limits }: Pick<InstanceState, 'limits'>): number {
  return Math.min(1, Math.max(...limits.map(fillOfLimit)));
}

/** A limit by rules counts nothing. */
type ShownLimit = LimitInForce & { readonly used?: number };

function fillOfLimit(limit: ShownLimit): number {
  const capacity = capacityOf(limit);
  return capacity === 0 ? 1 : (limit.used ?? 0) / capacity;
}

/**
 * Returns the limits of a key as the page gets them, which knows no kind of limits.
 * @param isHeldOnly whether its own limit, the first, says how many are at work at once
 */
export function shownLimits(limits: readonly ShownLimit[], isHeldOnly = false) {
  return limits.map((limit, i) => ({
    ...limit,
    ...(isHeldOnly && i === 0 && { isHeldOnly }),
    fill: fillOfLimit(limit),
    hasBoundary: kindOf(limit.algorithm).hasBoundary,
    ...(limit.perGroup && { maxima: [...limit.perGroup.maxima] }),
  }));
}

/** Denials per second. Without a run that is known here, those of all replicas in this window. */
function denialsOf({ denied, limits: [own] }: InstanceState, { run, rates }: Lately): number {
  if (run) return Math.max(run.perSecond, rates?.denied ?? 0);
  return Math.max((denied * 1000) / own.windowMillis, rates?.denied ?? 0);
}

/** Of denials that no replica reports, only their number in the window is known. */
function isDeniedNow({ limits: [own] }: InstanceState, { run, rates }: Lately): boolean {
  if (rates && rates.denied > 0) return true;
  return run ? run.lastMillis <= DENIED_NOW_MILLIS : own.windowMillis <= DENIED_NOW_MILLIS;
}

/** Whether the own limit of a key says how many are at work at once: all that counts is held until it is released. */
export function countsHeldOnly(
  { held, limits: [own] }: Pick<InstanceState, 'held' | 'limits'>,
  rates: KeyRates | undefined,
): boolean {
  if (!kindOf(own.algorithm).hasBoundary) return false;
  return rates?.isHeldOnly ?? (held > 0 && own.used === held);
}

/** After this much work, a walk pauses, so that the event loop serves checks. */
const WORK_MILLIS = 1;
const PAUSE_MILLIS = 1;
/** The work of a pause itself. */
const PAUSE_COST_MILLIS = 0.1;
/** The shortest time between two walks through the keys, and the addition for each key. */
const SHORTEST_REST_MILLIS = 2000;
const REST_PER_KEY_MILLIS = 0.5;
/** The time until the next walk, in multiples of the length of a walk. */
const RESTS_PER_WALK = 150;
/** How long a reader waits for the first walk, or the first one after an outage. After that it gets what is known so far. */
const PATIENCE_MILLIS = 2000;
/** A survey that nobody has read for this long is dropped. */
const FORGOTTEN_AFTER_MILLIS = 60_000;

/** Beyond this number, a survey keeps only keys that are full or paused, have waiters or held approvals, or have denied. */
const KEPT_OF_ALL = 20_000;
const KEPT_AT_MOST = 50_000;

/** In how many of the longest queues a survey looks for replicas. */
const QUEUES_LOOKED_INTO = 5;

type SurveyedLimiter = Pick<Limiter, 'list'> & Operator<'examine'>;

/** All keys, as found by a walk through them. */
export interface Survey extends Pick<Walk, 'states' | 'keys' | 'replicas'> {
  /** False while the first walk goes on. */
  readonly isComplete: boolean;
  /** Since the walk began. */
  readonly ageMillis: number;
  /** Why the last walk failed. */
  readonly failure: 'forbidden' | 'unavailable' | 'fault' | undefined;
}

/**
 * Walks through all keys while somebody looks at the page. All readers share one survey. The longer a walk takes, the
 * later the next one begins, so that walks take less than a hundredth of the time.
 */
export class KeySurvey {
  #found: Walk | undefined;
  #underWay: Walk | undefined;
  #walking: Promise<void> | undefined;
  #failure: Survey['failure'];
  #dueAt = -Infinity;
  #forgetTimer: NodeJS.Timeout | undefined;

  constructor(
    private readonly limiter: SurveyedLimiter,
    private readonly logger: Logger,
    private readonly clock: Pick<Clock, 'now'> = systemClock,
  ) {}

  /** The newest survey. Begins another walk if one is due. */
  async look(): Promise<Survey> {
    this.#forgetLater();
    if (this.clock.now() >= this.#dueAt) this.#walking ??= this.#walk();
    if ((!this.#found || this.#failure === 'unavailable') && this.#walking) {
      await Promise.race([this.#walking, delay(PATIENCE_MILLIS, undefined, { ref: false })]);
    }
    const { states, keys, replicas, begun } = this.#found ?? this.#underWay ?? new Walk(this.clock);
    return {
      ...{ states, keys, replicas },
      isComplete: this.#found !== undefined,
      ageMillis: this.clock.now() - begun,
      failure: this.#failure,
    };
  }

  /**
   * Keeps what was read of a key since, if the key is in the survey.
   * @param state undefined if the key does not exist any more
   */
  update(key: string, state: InstanceState | undefined): void {
    const walk = this.#found;
    if (!walk?.states.has(key)) return;
    if (state) walk.states.set(key, state);
    else walk.forget(key);
  }

  async #walk(): Promise<void> {
    const walk = new Walk(this.clock);
    this.#underWay = walk;
    try {
      await walk.run(this.limiter, () => {
        this.#failure = undefined;
      });
      this.#found = walk;
      this.#failure = undefined;
    } catch (error) {
      this.#failure = this.#failureOf(error);
    } finally {
      this.#walking = undefined;
      this.#underWay = undefined;
      const rest = Math.max(
        SHORTEST_REST_MILLIS + walk.keys * REST_PER_KEY_MILLIS,
        walk.millis * RESTS_PER_WALK,
      );
      // While the store is down a walk ends at once, and the next look has to find out that the store is back.
      this.#dueAt = this.#failure === 'unavailable' ? -Infinity : this.clock.now() + rest;
    }
  }

  #failureOf(error: unknown): Survey['failure'] {
    if (error instanceof ListingForbiddenError) return 'forbidden';
    if (error instanceof UnavailableError) return 'unavailable';
    this.logger.error({ err: error }, 'keys not surveyed');
    return 'fault';
  }

  #forgetLater(): void {
    this.#forgetTimer ??= setTimeout(() => {
      this.#found = undefined;
    }, FORGOTTEN_AFTER_MILLIS).unref();
    this.#forgetTimer.refresh();
  }
}

class Walk {
  readonly begun: number;
  readonly states = new Map<string, InstanceState>();
  /** The replicas with places in the longest queues. */
  replicas: readonly QueueingReplica[] = [];
  /** The number of keys, including those that were not kept. */
  keys = 0;
  /** How long it took, without its pauses. */
  millis = 0;

  constructor(private readonly clock: Pick<Clock, 'now'>) {
    this.begun = clock.now();
  }

  /** @param onPage is called for each page: the store answers */
  async run(limiter: SurveyedLimiter, onPage: () => void): Promise<void> {
    const pages = limiter.list()[Symbol.asyncIterator]();
    let pausedAt = this.millis;
    const nextPage = () =>
      this.#timed(async () => {
        const next = await pages.next();
        if (!next.done) {
          this.#keep(next.value);
          onPage();
        }
        return next.done;
      });
    while (!(await nextPage())) {
      if (this.millis - pausedAt < WORK_MILLIS) continue;
      await delay(PAUSE_MILLIS);
      this.millis += PAUSE_COST_MILLIS;
      pausedAt = this.millis;
    }
    await this.#timed(() => this.#findReplicas(limiter));
  }

  forget(key: string): void {
    if (this.states.delete(key)) this.keys -= 1;
  }

  async #timed<T>(work: () => Promise<T>): Promise<T> {
    const begun = this.clock.now();
    const done = await work();
    this.millis += this.clock.now() - begun;
    return done;
  }

  #keep(page: readonly InstanceState[]): void {
    this.keys += page.length;
    for (const state of page) {
      const { size } = this.states;
      if (size < KEPT_OF_ALL || (size < KEPT_AT_MOST && isOfNote(state))) {
        this.states.set(state.key, state);
      }
    }
  }

  async #findReplicas(limiter: SurveyedLimiter): Promise<void> {
    const longest = new Top<string>(QUEUES_LOOKED_INTO);
    for (const { key, waiting } of this.states.values()) {
      if (waiting > 0) longest.offer(key, waiting);
    }
    const examined = await Promise.all(
      longest.items.map((key) => limiter.ask('examine', { key, mostQueued: 0 })),
    );
    const byName = new Map<string | undefined, QueueingReplica>();
    for (const found of examined.flatMap((detail) => detail?.replicas ?? [])) {
      const before = byName.get(found.replica);
      byName.set(found.replica, before ? together(before, found) : found);
    }
    this.replicas = [...byName.values()];
  }
}

function isOfNote(state: InstanceState): boolean {
  const { waiting, denied, held, pausedMillis } = state;
  return waiting + denied + held + pausedMillis > 0 || fillOf(state) >= 1;
}

/** The same replica in two queues. The longer lease counts, since it was renewed last. */
function together(a: QueueingReplica, b: QueueingReplica): QueueingReplica {
  const [shorter, longer] = [a, b].sort((x, y) => (x.leaseMillis ?? 0) - (y.leaseMillis ?? 0));
  return { ...(longer ?? a), places: (shorter ?? b).places + (longer ?? a).places };
}
