import type { Logger } from 'pino';

const INTERVAL_MILLIS = 1000;

/** Logs failed calls: one line a second with their number. */
export class FailureLog {
  #lastLine = -Infinity;
  #unlogged = 0;

  constructor(private readonly logger: Logger) {}

  note(script: string, error: unknown): void {
    this.#unlogged += 1;
    const now = performance.now();
    if (now - this.#lastLine < INTERVAL_MILLIS) return;
    const reason = error instanceof Error ? error.message : error;
    this.logger.warn({ script, reason, failures: this.#unlogged }, 'store call failed');
    this.#lastLine = now;
    this.#unlogged = 0;
  }
}
