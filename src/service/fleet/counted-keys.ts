import type { Clock } from '../../common/clock.js';
import type { Decision, Limiter } from '../../limiter/limiter.js';
import {
  HISTORY_MILLIS,
  type HistoryPage,
  minuteOf,
  MOST_STEPS,
  type Step,
  STEP_MILLIS,
  writePages,
} from './key-history.js';
import { type Activity, activityOf, lastSpanAt, oldestOf, STEPS_PER_SPAN } from './rates.js';
import { StepLog } from './step-log.js';
import { type Decisions, type TotalActivity, TotalRates } from './total-rates.js';

/** The most keys that are counted because somebody looks at them. Of more, those are that were looked at last. */
export const MOST_WATCHED = 32;
/** The most other keys that are counted on after a step: the busiest. */
export const MOST_KEPT = 256;
/** The most other keys that are counted in a step, so that a key that becomes busy is found. */
const MOST_COUNTED = 2 * MOST_KEPT;
/** The most keys of a report, the busiest. */
export const MOST_REPORTED = 200;
/** A decision counts half as much for how busy a key is after this many steps: a minute. */
const FADED_PER_STEP = 0.5 ** (STEP_MILLIS / 60_000);
/** A key is counted for this long after somebody has looked at it, or after its last decision. */
const COUNTED_MILLIS = HISTORY_MILLIS;
/** A key is one of held approvals only if no other approval was made for this long. */
const HELD_ONLY_MILLIS = 5 * 60_000;

type Counts = Omit<Step, 'number' | 'waiting'>;

interface Counted {
  readonly key: string;
  /** Of the step that has not ended. Undefined until a step begins, for a key whose earlier decisions may not have been counted. */
  counts: { -readonly [Name in keyof Counts]: Counts[Name] } | undefined;
  /** Those that have ended. Undefined until one has. */
  steps: StepLog | undefined;
  /** When somebody has looked at it last. Undefined for a key that is counted only because it is busy. */
  lookedAt: number | undefined;
  /** The end of the last step with a decision. */
  decidedAt: number;
  /** How many decisions it had, of which each fades with time. */
  level: number;
  /** How many of its approvals in the step that has not ended had a hold. */
  held: number;
  /** The ends of the last steps with an approval that had a hold, and with one that had none. */
  heldAt: number;
  unheldAt: number;
  /** The number of the last step that the other replicas know. */
  shared: number;
}

/** What a replica has decided lately. */
export interface ReplicaActivity {
  /** The number of the span in which each series ends. */
  readonly span: number;
  readonly total: TotalActivity;
  /** Its busiest keys. */
  readonly keys: readonly KeyActivity[];
}

/** What a replica has approved and denied lately of one of its busiest keys. */
export interface KeyActivity extends Activity {
  readonly key: string;
  /** Whether each approval of the last minutes had a hold. Undefined if there was none. */
  readonly isHeldOnly?: boolean | undefined;
}

/**
 * Counts what this replica decides about its busiest keys, and about the keys that somebody looks at, in steps that begin at
 * the same moments on all replicas. A decision costs one look-up in a small map. When a step ends, the busiest keys stay,
 * and the others make room for new ones. If there is no room for all new keys, every n-th decision about one brings its key
 * in, so that a busier key gets in sooner. So any number of keys takes bounded memory.
 */
export class CountedKeys {
  /** Of the keys that somebody looks at, the key that was looked at last is the last. */
  readonly #counted = new Map<string, Counted>();
  #watched = 0;
  /** The decisions of this step about keys that were not counted, and which of them brings its key in next. */
  #missed = 0;
  /** Infinity: no key comes in. */
  #nextIn = Infinity;
  #stride = 1;
  /** The step in which the counting began. */
  readonly #firstStep: number;
  readonly #totals: TotalRates;
  /** What was told last, and the last step then: it changes with a step, and every viewer and replica asks for it. */
  #told: ReplicaActivity | undefined;
  #toldAt: number | undefined;
  #cancelTimer: (() => void) | undefined;

  /** @param decisionTotals of all keys since the start */
  constructor(
    private readonly limiter: Pick<Limiter, 'waiting'>,
    private readonly clock: Clock,
    private readonly decisionTotals: () => Promise<Decisions>,
  ) {
    this.#firstStep = Math.floor(clock.now() / STEP_MILLIS);
    this.#totals = new TotalRates(this.#firstStep);
  }

  /** Counts, and ends each step on time, until `close`. */
  start(): void {
    this.#nextIn = 1;
    this.#awaitStep();
  }

  #awaitStep(): void {
    const now = this.clock.now();
    const next = (Math.floor(now / STEP_MILLIS) + 1) * STEP_MILLIS;
    this.#cancelTimer = this.clock.after(next - now, () => {
      this.#endStep();
      this.#awaitStep();
    });
  }

  /** Somebody looks at a key. */
  watch(key: string): void {
    const now = this.clock.now();
    const counted = this.#counted.get(key) ?? this.#add(key, this.#isNew() ? nothing() : undefined);
    if (counted.lookedAt === undefined) this.#watched += 1;
    counted.lookedAt = now;
    this.#counted.delete(key);
    this.#counted.set(key, counted);
    if (this.#watched > MOST_WATCHED) this.#unwatchOldest();
  }

  /**
   * @param millis from the arrival of the check to its decision
   * @param isHeld whether the check asks for a hold
   */
  record(key: string, decision: Decision, millis: number, isHeld: boolean): void {
    const { outcome } = decision;
    if (outcome !== 'approved' && outcome !== 'denied') return;
    const counted = this.#counted.get(key) ?? this.#letIn(key);
    const counts = counted?.counts;
    if (!counts) return;
    if (outcome === 'denied') {
      counts.denied += 1;
      return;
    }
    counts.approved += 1;
    if (isHeld) counted.held += 1;
    if (!decision.waited) return;
    counts.waited += 1;
    counts.waitedMillis += Math.round(millis);
  }

  /** The steps of a key that have ended, the oldest first. Empty if it is not counted. */
  stepsOf(key: string): readonly Step[] {
    return this.#counted.get(key)?.steps?.since(0) ?? [];
  }

  /** What was decided lately. Undefined until the first step has ended. */
  activity(): ReplicaActivity | undefined {
    const { last } = this.#totals;
    if (last !== this.#toldAt) {
      this.#toldAt = last;
      this.#told = this.#activityNow();
    }
    return this.#told;
  }

  #activityNow(): ReplicaActivity | undefined {
    const total = this.#totals.now();
    const { last } = this.#totals;
    if (!total || last === undefined) return undefined;
    const span = lastSpanAt(last);
    const oldest = oldestOf(span) * STEPS_PER_SPAN;
    const now = this.clock.now();
    const keys = this.#byLevel()
      .slice(0, MOST_REPORTED)
      .map((counted) => ({
        key: counted.key,
        ...activityOf(stepsIn(counted, oldest, last), last, this.#firstStep),
        isHeldOnly: isHeldOnly(counted, now),
      }));
    return { span, total, keys };
  }

  /**
   * Writes the minutes of a key's history that have steps which were not written yet.
   * @throws what `write` throws; the minutes are written again then
   */
  async share(key: string, write: (page: HistoryPage) => Promise<void>): Promise<void> {
    const counted = this.#counted.get(key);
    const last = counted?.steps?.last;
    if (!counted || last === undefined || last <= counted.shared) return;
    const { shared } = counted;
    const first = minuteOf({ number: Math.max(shared + 1, last - MOST_STEPS) });
    const steps = this.stepsOf(key).filter((step) => minuteOf(step) >= first);
    counted.shared = last;
    try {
      await Promise.all(writePages(steps).map(write));
    } catch (error) {
      counted.shared = Math.min(counted.shared, shared);
      throw error;
    }
  }

  close(): void {
    this.#counted.clear();
    this.#watched = 0;
    this.#cancelTimer?.();
    this.#nextIn = Infinity;
  }

  /** Whether a key that is not counted has had no decision in this step: each that had one was let in. */
  #isNew(): boolean {
    return this.#nextIn === 1 || (this.#stride === 1 && this.#nextIn !== Infinity);
  }

  #letIn(key: string): Counted | undefined {
    this.#missed += 1;
    if (this.#missed < this.#nextIn) return undefined;
    const isLast = this.#counted.size - this.#watched + 1 >= MOST_COUNTED;
    this.#nextIn = isLast ? Infinity : this.#missed + this.#stride;
    return this.#add(key, nothing());
  }

  #add(key: string, counts: Counted['counts']): Counted {
    const counted: Counted = {
      ...{ key, counts, steps: undefined, lookedAt: undefined },
      ...{ decidedAt: this.clock.now(), level: 0, held: 0 },
      ...{ heldAt: -Infinity, unheldAt: -Infinity, shared: -1 },
    };
    this.#counted.set(key, counted);
    return counted;
  }

  #unwatchOldest(): void {
    for (const counted of this.#counted.values()) {
      if (counted.lookedAt === undefined) continue;
      counted.lookedAt = undefined;
      this.#watched -= 1;
      return;
    }
  }

  /** If the event loop was blocked for several steps, the last of them has what was counted in all. */
  #endStep(): void {
    const now = this.clock.now();
    const number = Math.floor(now / STEP_MILLIS) - 1;
    for (const [key, counted] of this.#counted) this.#rank(key, counted, now);
    this.#dropRest();
    for (const [key, counted] of this.#counted) {
      const { counts } = counted;
      // Most keys that come in leave with the step.
      if (counts)
        (counted.steps ??= new StepLog()).add({
          number,
          ...counts,
          waiting: this.limiter.waiting(key),
        });
      counted.counts = nothing();
    }
    const room = MOST_COUNTED - (this.#counted.size - this.#watched);
    this.#stride = Math.max(1, Math.ceil(this.#missed / room));
    this.#missed = 0;
    this.#nextIn = 1;
    // The totals are taken now, and only told later.
    void this.decisionTotals().then((totals) => this.#totals.add(number, totals));
  }

  /** Notes how busy a key is, and forgets it if nobody has looked at it or checked it for long. */
  #rank(key: string, counted: Counted, now: number): void {
    const { approved = 0, denied = 0 } = counted.counts ?? {};
    if (approved + denied > 0) counted.decidedAt = now;
    if (counted.held > 0) counted.heldAt = now;
    if (approved > counted.held) counted.unheldAt = now;
    counted.held = 0;
    counted.level = counted.level * FADED_PER_STEP + approved + denied;
    const { lookedAt = -Infinity } = counted;
    if (counted.lookedAt !== undefined && now - lookedAt > COUNTED_MILLIS) {
      counted.lookedAt = undefined;
      this.#watched -= 1;
    }
    const isOld = now - Math.max(lookedAt, counted.decidedAt) > COUNTED_MILLIS;
    if (isOld) this.#counted.delete(key);
  }

  /** Of the keys that nobody looks at, the busiest stay. */
  #dropRest(): void {
    if (this.#counted.size - this.#watched <= MOST_KEPT) return;
    const others = this.#byLevel().filter(({ lookedAt }) => lookedAt === undefined);
    for (const { key } of others.slice(MOST_KEPT)) this.#counted.delete(key);
  }

  #byLevel(): Counted[] {
    return [...this.#counted.values()].sort((a, b) => b.level - a.level);
  }
}

/** The totals of a step come a moment after the steps of the keys, so that a key may have one more. */
function stepsIn({ steps }: Counted, oldest: number, last: number): Step[] {
  return (steps?.since(oldest) ?? []).filter(({ number }) => number <= last);
}

function isHeldOnly({ heldAt, unheldAt }: Counted, now: number): boolean | undefined {
  if (now - unheldAt <= HELD_ONLY_MILLIS) return false;
  if (heldAt > -Infinity) return true;
  return unheldAt > -Infinity ? false : undefined;
}

function nothing(): NonNullable<Counted['counts']> {
  return { approved: 0, denied: 0, waited: 0, waitedMillis: 0 };
}
