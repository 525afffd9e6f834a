import type { Clock } from '../../common/clock.js';
import { WAKE_GRACE_MILLIS } from '../shared/losses.js';

/** What the number of a message tells. */
export type Heard =
  /** The message is newer than all before. */
  | 'new'
  /** A message that is as new, or newer, has come before. */
  | 'late'
  /** Wakes were missed, or Redis has lost the key. */
  | 'missed';

/**
 * The numbers of a key's wakes, by which a replica notices that it has missed one. Redis numbers the wakes of a key one
 * after the other, and each reply has the number of the last one. The wakes themselves come in their order.
 */
export class WakeNumbers {
  /** All wakes after `#first` up to this one have come. Undefined after messages may have been lost. */
  #known: number | undefined;
  #first = 0;
  /** The highest number that any message has had. */
  #newest = 0;
  /** When the last wake came, by the clock. */
  #wokenAt = -Infinity;
  #cancelGrace: (() => void) | undefined;
  #hasEnded = false;

  /** @param onMissed called when a wake of which a reply has told has not come in time */
  constructor(
    private readonly clock: Clock,
    private readonly onMissed: () => void,
  ) {}

  /** The number of the last wake that has come. Undefined if that is not known. */
  get known(): number | undefined {
    return this.#known;
  }

  /** Whether a wake may be on its way. */
  get isAwaiting(): boolean {
    return this.#known !== undefined && this.#newest > this.#known;
  }

  /** A wake has come. */
  woken(number: number): Heard {
    this.#wokenAt = this.clock.now();
    if (this.#known === number) return 'late';
    const isNext = this.#known === number - 1;
    if (!isNext) {
      const heard = this.#known === undefined ? 'new' : 'missed';
      this.#begin(number - 1, number);
      return heard;
    }
    this.#known = number;
    this.#endGrace();
    if (this.isAwaiting) this.#beginGrace();
    // A reply has told of it, or of a later one.
    if (number <= this.#newest) return 'late';
    this.#newest = number;
    return 'new';
  }

  /**
   * A reply has come.
   * @param number of the last wake before the reply was made
   * @param sentAt when its call was sent, by the clock
   */
  replied(number: number, sentAt: number): Heard {
    if (this.#known === undefined) {
      this.#begin(number, number);
      return 'new';
    }
    const mayBeOvertaken = this.#wokenAt >= sentAt;
    // Nobody has seen the wakes between a reply that is older than the first wake and that wake.
    if (number < this.#first || (number < this.#known && !mayBeOvertaken)) {
      this.#begin(number, number);
      return 'missed';
    }
    // A later reply may have come before, or a wake.
    if (number < this.#newest) return 'late';
    this.#newest = number;
    if (this.isAwaiting) this.#beginGrace();
    return 'new';
  }

  /** Messages may have been lost. The next one tells the number. */
  forget(): void {
    this.#known = undefined;
    this.#endGrace();
  }

  /** No message matters any more. */
  end(): void {
    this.#hasEnded = true;
    this.#endGrace();
  }

  #begin(first: number, known: number): void {
    this.#first = first;
    this.#known = known;
    this.#newest = known;
    this.#endGrace();
  }

  /** Further replies do not prolong it, or a replica that hears no wakes any more would not notice. */
  #beginGrace(): void {
    if (this.#hasEnded) return;
    this.#cancelGrace ??= this.clock.after(WAKE_GRACE_MILLIS, () => {
      this.#begin(this.#newest, this.#newest);
      this.onMissed();
    });
  }

  #endGrace(): void {
    this.#cancelGrace?.();
    this.#cancelGrace = undefined;
  }
}
