import type { Clock } from '../../common/clock.js';
import { UnavailableError } from '../../limiter/errors.js';
import {
  HISTORY_MILLIS,
  historyOf,
  type KeyHistory,
  minuteAt,
  readPage,
  type Step,
  STEP_MILLIS,
  sumOf,
} from './key-history.js';
import { MOST_WATCHED } from './counted-keys.js';

/** Before the newest minute, which has only begun. */
const MINUTES_BEFORE = minuteAt(HISTORY_MILLIS);

/**
 * Reads the pages of a minute of a key's history, by the names of the replicas that have written them.
 * @throws UnavailableError if the store is down
 */
export type ReadPages = (key: string, minute: number) => Promise<Readonly<Record<string, string>>>;

/** What is known of a key's history. */
interface Known {
  /** The steps of all replicas, by minute and number. */
  readonly minutes: Map<number, ReadonlyMap<number, Step>>;
  /** The number of the last step that each living replica has shared. Undefined until one has shared any. */
  last: number | undefined;
  /** Whether the living replicas had shared anything lately when it was read, and so all that they have counted before. */
  isSettled: boolean;
  /** Which of the older minutes is read again next. */
  turn: number;
}

/**
 * The histories of keys, of what all replicas have shared. While nobody looks, a replica shares nothing, and then all that it
 * has counted meanwhile. So a look reads all minutes until replicas have shared some of the two newest; after that only
 * these, and in turns one of the others, for a replica that is late. If the store is down, what was read before stays.
 */
export class SharedHistories {
  /** The key that was looked at last is the last. */
  readonly #known = new Map<string, Known>();

  constructor(
    private readonly readPages: ReadPages,
    private readonly clock: Pick<Clock, 'now'>,
  ) {}

  /** @param living the names of the replicas that have not ended */
  async look(key: string, living: ReadonlySet<string>): Promise<KeyHistory> {
    const known = this.#knownOf(key);
    try {
      await this.#read(key, known, living);
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
    }
    const steps = new Map([...known.minutes.values()].flatMap((minute) => [...minute]));
    return historyOf(steps, known.last ?? Math.floor(this.clock.now() / STEP_MILLIS) - 1);
  }

  #knownOf(key: string): Known {
    const known: Known = this.#known.get(key) ?? {
      minutes: new Map(),
      last: undefined,
      isSettled: false,
      turn: 0,
    };
    this.#known.delete(key);
    this.#known.set(key, known);
    const [oldest] = this.#known.keys();
    if (this.#known.size > MOST_WATCHED && oldest !== undefined) this.#known.delete(oldest);
    return known;
  }

  async #read(key: string, known: Known, living: ReadonlySet<string>): Promise<void> {
    const { minutes } = known;
    const newest = minuteAt(this.clock.now());
    const oldest = newest - MINUTES_BEFORE;
    for (const minute of minutes.keys()) if (minute < oldest) minutes.delete(minute);
    known.turn = (known.turn + 1) % MINUTES_BEFORE;
    const lasts = new Map<string, number>();
    for (let minute = oldest; minute <= newest; minute += 1) {
      const isNew = minute >= newest - 1;
      if (!isNew && known.isSettled && minute !== oldest + known.turn) continue;
      const steps: Step[] = [];
      // One after the other, so that checks are served between them.
      for (const [replica, text] of Object.entries(await this.readPages(key, minute))) {
        const written = readPage({ minute, text });
        steps.push(...written);
        const last = written.at(-1)?.number;
        if (isNew && last !== undefined && living.has(replica)) lasts.set(replica, last);
      }
      minutes.set(minute, sumOf(steps));
    }
    known.isSettled = lasts.size > 0;
    if (known.isSettled) known.last = Math.min(...lasts.values());
  }
}
