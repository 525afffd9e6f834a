import type { QueueNews } from '../scripts/check-codec.js';
import { limitsIn } from '../scripts/limits-codec.js';
import type { KnownWindow } from '../scripts/settle-codec.js';
import type { News } from './news.js';
import type { Heard } from './wake-numbers.js';
import { WindowTiming } from './window-timing.js';

/** What Redis has said last of a key with waiters, in whatever order its messages come. */
export class LastNews {
  readonly timing: WindowTiming;
  /** The limits in force, as Redis wrote them last. After a loss of its memory, it gets them from here. */
  #limits = '';
  #isQueueEmpty = false;

  /**
   * @param windowMillis the length of the key's windows by this replica's rules, as of now
   * @param graceMillis see {@link WindowTiming}
   * @param delayMillis see {@link WindowTiming}
   */
  constructor(
    windowMillis: () => number,
    graceMillis: number,
    delayMillis: (storeRoomAt: number) => number,
  ) {
    this.timing = new WindowTiming(
      () => (this.#limits === '' ? windowMillis() : limitsIn(this.#limits).limits[0].windowMillis),
      graceMillis,
      delayMillis,
    );
  }

  /** Whether nobody waits on any replica, so that no window leader is needed. */
  get isQueueEmpty(): boolean {
    return this.#isQueueEmpty;
  }

  /** What Redis gets of a key that it may have lost. */
  window(now: number): KnownWindow {
    return { millisLeft: this.timing.millisToRoom(now), limits: this.#limits };
  }

  /** A check was answered with a ticket. */
  ticketed(now: number, heard: Heard, millisToRoom: number, { at, limits }: QueueNews): void {
    this.#isQueueEmpty = false;
    if (heard !== 'late') this.#limits = limits;
    this.#learnRoom(now, heard, at, millisToRoom);
  }

  /** @param hasTickets whether anybody here has one: then the timing of a lost window is needed to create the key again */
  learn(now: number, heard: Heard, news: News, hasTickets: boolean): void {
    const { at, millisToRoom, waiting, limits } = news;
    if (millisToRoom !== undefined) this.#learnRoom(now, heard, at, millisToRoom);
    else if (!hasTickets) this.timing.forget(now);
    if (heard === 'late') return;
    this.#isQueueEmpty = waiting === 0;
    // A key that Redis does not know has none. Redis has to get the earlier ones.
    if (limits) this.#limits = limits;
  }

  #learnRoom(now: number, heard: Heard, at: number | undefined, millisToRoom: number): void {
    const isNewest = heard === 'news' || heard === 'missed';
    if (isNewest && at !== undefined) this.timing.learn(now, at, millisToRoom);
    else this.timing.learnUnordered(now, millisToRoom);
  }
}
