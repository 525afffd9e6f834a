import type { Logger } from 'pino';

import type { DropReason } from '../../metrics/metrics.js';

const INTERVAL_MILLIS = 1000;

/** Logs dropped connections: the first at once, then one line a second with their numbers. */
export class DropLog {
  #unlogged: Partial<Record<DropReason, number>> = {};
  #timer: NodeJS.Timeout | undefined;

  constructor(private readonly logger: Logger) {}

  note(reason: DropReason): void {
    this.#unlogged[reason] = (this.#unlogged[reason] ?? 0) + 1;
    if (!this.#timer) this.#log();
  }

  #log(): void {
    this.logger.warn({ dropped: this.#unlogged }, 'connections dropped');
    this.#unlogged = {};
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      if (Object.keys(this.#unlogged).length > 0) this.#log();
    }, INTERVAL_MILLIS).unref();
  }
}
