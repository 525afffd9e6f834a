import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';

import type { Logger } from 'pino';

import type { Clock } from '../common/clock.js';

const SAMPLE_MILLIS = 500;
/** The monitor's timer; what it measures is the time between two of its rings, this included. */
const RESOLUTION_MILLIS = 10;
/** The part of the limit below which the event loop has recovered; at the limit it would go to and fro. */
const RECOVERED = 0.5;

/** What is used of Node's monitor of the event loop's delay, which counts nanoseconds. */
export type DelayMonitor = Pick<
  IntervalHistogram,
  'enable' | 'disable' | 'reset' | 'mean' | 'count'
>;

/** Rings of the monitor's timer, and the nanoseconds between them, all together. */
interface Sample {
  readonly count: number;
  readonly nanos: number;
}

interface WatchParts {
  /** The mean delay that is too much, in milliseconds. */
  readonly limitMillis: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly monitor?: DelayMonitor;
}

/**
 * Watches whether the event loop keeps up: its mean delay over the last second. One long tick, such as
 * a garbage collection, is no overload; turns that are all long are. Watches until it is stopped.
 */
export class EventLoopWatch {
  readonly #monitor: DelayMonitor;
  #last: Sample | undefined;
  #delayMillis = 0;
  #isOverloaded = false;
  #cancelTimer!: () => void;

  constructor(private readonly parts: WatchParts) {
    this.#monitor = parts.monitor ?? monitorEventLoopDelay({ resolution: RESOLUTION_MILLIS });
    this.#monitor.enable();
    this.#sampleLater();
  }

  /** Why requests should go elsewhere; undefined while the event loop keeps up. */
  get reason(): string | undefined {
    if (!this.#isOverloaded) return undefined;
    return `event loop delayed by ${Math.round(this.#delayMillis)} ms`;
  }

  stop(): void {
    this.#cancelTimer();
    this.#monitor.disable();
  }

  #sampleLater(): void {
    this.#cancelTimer = this.parts.clock.after(SAMPLE_MILLIS, () => {
      this.#sample();
      this.#sampleLater();
    });
  }

  #sample(): void {
    const { count, mean } = this.#monitor;
    // Without a ring the mean is not a number.
    const sample = { count, nanos: count === 0 ? 0 : mean * count };
    this.#monitor.reset();
    if (this.#last) this.#judge(this.#last, sample);
    this.#last = sample;
  }

  #judge(earlier: Sample, later: Sample): void {
    const count = earlier.count + later.count;
    // The monitor's timer is late, too; what it missed is in the next sample.
    if (count === 0) return;
    const meanMillis = (earlier.nanos + later.nanos) / count / 1e6;
    this.#delayMillis = Math.max(0, meanMillis - RESOLUTION_MILLIS);
    const { limitMillis } = this.parts;
    if (this.#isOverloaded) this.#set(this.#delayMillis >= limitMillis * RECOVERED);
    else this.#set(this.#delayMillis > limitMillis);
  }

  #set(isOverloaded: boolean): void {
    if (isOverloaded === this.#isOverloaded) return;
    this.#isOverloaded = isOverloaded;
    if (isOverloaded) this.parts.logger.warn({ reasons: [this.reason] }, 'not ready');
    else this.parts.logger.info('ready again');
  }
}
