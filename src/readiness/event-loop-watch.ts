import { type IntervalHistogram, monitorEventLoopDelay } from 'node:perf_hooks';

import type { Logger } from 'pino';

import type { Clock } from '../common/clock.js';

const SAMPLE_MILLIS = 500;
/** The interval of the monitor's timer. It is part of the time between two rings, which the monitor measures. */
const RESOLUTION_MILLIS = 10;
/** The event loop has recovered below this part of the limit. With the limit itself the state would flicker. */
const RECOVERED = 0.5;

/** What is used of Node's monitor of the event loop's delay. It counts nanoseconds. */
export type DelayMonitor = Pick<
  IntervalHistogram,
  'enable' | 'disable' | 'reset' | 'mean' | 'count'
>;

/** The number of rings of the monitor's timer, and the sum of the nanoseconds between them. */
interface Sample {
  readonly count: number;
  readonly nanos: number;
}

interface WatchParts {
  /** The mean delay above which the event loop is overloaded, in milliseconds. */
  readonly limitMillis: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly monitor?: DelayMonitor;
}

/**
 * Watches whether the event loop keeps up, by its mean delay over the last second. One long tick, such as a garbage
 * collection, is no overload, but many long ticks are. Watches until it is stopped.
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
    // The monitor's timer is also late. The next sample includes the missing time.
    if (count === 0) return;
    const meanMillis = (earlier.nanos + later.nanos) / count / 1e6;
    this.#delayMillis = Math.max(0, meanMillis - RESOLUTION_MILLIS);
    const { limitMillis } = this.parts;
    const isOverloaded = this.#isOverloaded
      ? this.#delayMillis >= limitMillis * RECOVERED
      : this.#delayMillis > limitMillis;
    if (isOverloaded === this.#isOverloaded) return;
    this.#isOverloaded = isOverloaded;
    if (isOverloaded) this.parts.logger.warn({ reasons: [this.reason] }, 'not ready');
    else this.parts.logger.info('ready again');
  }
}
