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

/** The most keys that are counted. Of more, those are that were looked at last. */
export const MOST_WATCHED = 32;
/** Decisions about a key are counted for this long after somebody has looked at it. */
const WATCHED_MILLIS = HISTORY_MILLIS;

type Counts = Omit<Step, 'number' | 'waiting'>;

interface Watched {
  lookedAt: number;
  /** Of the step that has not ended. Undefined until a step begins, since the first one has begun before. */
  counts: { -readonly [Name in keyof Counts]: Counts[Name] } | undefined;
  readonly steps: Step[];
  /** The number of the last step that the other replicas know. */
  shared: number;
}

/**
 * Counts what this replica decides about the keys that somebody looks at, in steps that begin at the same moments on all
 * replicas. Without such a key there is no timer, and a decision costs one comparison.
 */
export class WatchedKeys {
  /** The key that was looked at last is the last. */
  readonly #watched = new Map<string, Watched>();
  #cancelTimer: (() => void) | undefined;

  constructor(
    private readonly limiter: Pick<Limiter, 'waiting'>,
    private readonly clock: Clock,
  ) {}

  watch(key: string): void {
    const now = this.clock.now();
    const watched = this.#watched.get(key);
    this.#watched.delete(key);
    this.#watched.set(key, watched ?? { lookedAt: now, counts: undefined, steps: [], shared: -1 });
    if (watched) watched.lookedAt = now;
    const [oldest] = this.#watched.keys();
    if (this.#watched.size > MOST_WATCHED && oldest !== undefined) this.#watched.delete(oldest);
    if (!this.#cancelTimer) this.#countUntilNextStep();
  }

  /** @param millis from the arrival of the check to its decision */
  record(key: string, decision: Decision, millis: number): void {
    if (this.#watched.size === 0) return;
    const counts = this.#watched.get(key)?.counts;
    if (!counts) return;
    if (decision.outcome === 'denied') counts.denied += 1;
    if (decision.outcome !== 'approved') return;
    counts.approved += 1;
    if (!decision.waited) return;
    counts.waited += 1;
    counts.waitedMillis += Math.round(millis);
  }

  /** The steps of a key that have ended, the oldest first. Empty if nobody looks at the key. */
  stepsOf(key: string): readonly Step[] {
    return this.#watched.get(key)?.steps ?? [];
  }

  /**
   * Writes the minutes of a key's history that have steps which were not written yet.
   * @throws what `write` throws; the minutes are written again then
   */
  async share(key: string, write: (page: HistoryPage) => Promise<void>): Promise<void> {
    const watched = this.#watched.get(key);
    const last = watched?.steps.at(-1)?.number;
    if (!watched || last === undefined || last <= watched.shared) return;
    const { shared } = watched;
    const first = minuteOf({ number: shared + 1 });
    const pages = writePages(watched.steps.filter((step) => minuteOf(step) >= first));
    watched.shared = last;
    try {
      await Promise.all(pages.map(write));
    } catch (error) {
      watched.shared = Math.min(watched.shared, shared);
      throw error;
    }
  }

  close(): void {
    this.#watched.clear();
    this.#cancelTimer?.();
  }

  #countUntilNextStep(): void {
    const now = this.clock.now();
    const next = (Math.floor(now / STEP_MILLIS) + 1) * STEP_MILLIS;
    this.#cancelTimer = this.clock.after(next - now, () => {
      this.#cancelTimer = undefined;
      this.#endStep();
      if (this.#watched.size > 0) this.#countUntilNextStep();
    });
  }

  /** If the event loop was blocked for several steps, the last of them has what was counted in all. */
  #endStep(): void {
    const now = this.clock.now();
    const number = Math.floor(now / STEP_MILLIS) - 1;
    for (const [key, watched] of this.#watched) {
      if (now - watched.lookedAt > WATCHED_MILLIS) {
        this.#watched.delete(key);
        continue;
      }
      const { counts, steps } = watched;
      if (counts) steps.push({ number, ...counts, waiting: this.limiter.waiting(key) });
      if (steps.length > MOST_STEPS) steps.shift();
      watched.counts = { approved: 0, denied: 0, waited: 0, waitedMillis: 0 };
    }
  }
}
