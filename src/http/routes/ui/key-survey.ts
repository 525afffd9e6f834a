import { setTimeout as delay } from 'node:timers/promises';

import type { Logger } from 'pino';

import { ListingForbiddenError, UnavailableError } from '../../../limiter/errors.js';
import type { InstanceState, Limiter, QueueingReplica } from '../../../limiter/limiter.js';
import { Top } from './top.js';

/** After so much work on a walk comes a pause, in which the event loop serves checks. */
const WORK_MILLIS = 1;
const PAUSE_MILLIS = 1;
/** What a pause itself takes. */
const PAUSE_COST_MILLIS = 0.1;
/** The shortest time between two walks through the keys, and how much longer it is for each key. */
const SHORTEST_REST_MILLIS = 2000;
const REST_PER_KEY_MILLIS = 0.5;
/** A walk is followed by so many times its own length without one. */
const RESTS_PER_WALK = 150;
/** How long the first one who looks waits for a walk to end; then it sees what there is. */
const PATIENCE_MILLIS = 2000;
/** What nobody has looked at for so long is forgotten. */
const FORGOTTEN_AFTER_MILLIS = 60_000;

/** From this number on, only keys of note are kept: those that are full, wait, or deny. */
const KEPT_OF_ALL = 20_000;
const KEPT_AT_MOST = 50_000;

/** In how many queues, the longest, a survey looks for replicas. */
const QUEUES_LOOKED_INTO = 5;

type SurveyedLimiter = Pick<Limiter, 'list' | 'examine'>;

/** All keys as a walk through them has found them. */
export interface Survey {
  readonly states: ReadonlyMap<string, InstanceState>;
  /** How many there are, those that were not kept included. */
  readonly keys: number;
  /** Those with places in the longest queues. */
  readonly replicas: readonly QueueingReplica[];
  /** False while the first walk goes on. */
  readonly isComplete: boolean;
  /** Since the walk began. */
  readonly ageMillis: number;
  /** Why the last walk came to no end. */
  readonly failure: 'forbidden' | 'unavailable' | 'fault' | undefined;
}

/**
 * Walks through all keys for those who look at the page, and only then. All of them share one survey. The more a walk
 * takes, the longer the next one waits, so that walking takes less than a hundredth of the time.
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
    private readonly restMillis = SHORTEST_REST_MILLIS,
  ) {}

  /** The newest survey. Begins another where one is due. */
  async look(): Promise<Survey> {
    this.#forgetLater();
    if (performance.now() >= this.#dueAt) this.#walking ??= this.#walk();
    if (!this.#found && this.#walking) {
      await Promise.race([this.#walking, delay(PATIENCE_MILLIS, undefined, { ref: false })]);
    }
    const walk = this.#found ?? this.#underWay;
    return {
      states: walk?.states ?? new Map<string, InstanceState>(),
      keys: walk?.keys ?? 0,
      replicas: walk?.replicas ?? [],
      isComplete: this.#found !== undefined,
      ageMillis: walk ? performance.now() - walk.begun : 0,
      failure: this.#failure,
    };
  }

  async #walk(): Promise<void> {
    const walk = new Walk();
    this.#underWay = walk;
    try {
      await walk.run(this.limiter);
      this.#found = walk;
      this.#failure = undefined;
    } catch (error) {
      this.#failure = this.#failureOf(error);
    } finally {
      this.#walking = undefined;
      this.#underWay = undefined;
      const rest = Math.max(
        this.restMillis + walk.keys * REST_PER_KEY_MILLIS,
        walk.millis * RESTS_PER_WALK,
      );
      this.#dueAt = performance.now() + rest;
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

/** One walk through all keys. */
class Walk {
  readonly begun = performance.now();
  readonly states = new Map<string, InstanceState>();
  replicas: QueueingReplica[] = [];
  keys = 0;
  /** What it took of the time, its pauses left out. */
  millis = 0;

  async run(limiter: SurveyedLimiter): Promise<void> {
    const pages = limiter.list()[Symbol.asyncIterator]();
    let pausedAt = this.millis;
    const nextPage = () =>
      this.#timed(async () => {
        const next = await pages.next();
        if (!next.done) this.#keep(next.value);
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

  async #timed<T>(work: () => Promise<T>): Promise<T> {
    const begun = performance.now();
    const done = await work();
    this.millis += performance.now() - begun;
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
    const examined = await Promise.all(longest.items.map((key) => limiter.examine(key, 0)));
    const byName = new Map<string | undefined, QueueingReplica>();
    for (const found of examined.flatMap((detail) => detail?.replicas ?? [])) {
      const before = byName.get(found.replica);
      byName.set(found.replica, before ? together(before, found) : found);
    }
    this.replicas = [...byName.values()];
  }
}

function isOfNote({ approved, limits, waiting, denied }: InstanceState): boolean {
  return waiting > 0 || denied > 0 || approved >= limits.maxRequests;
}

/** The same replica in two queues. The lease that was renewed last tells that it lives. */
function together(a: QueueingReplica, b: QueueingReplica): QueueingReplica {
  const [shorter, longer] = [a, b].sort((x, y) => (x.leaseMillis ?? 0) - (y.leaseMillis ?? 0));
  return { ...(longer ?? a), places: (shorter ?? b).places + (longer ?? a).places };
}
