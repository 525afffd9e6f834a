import { Counter, Gauge, type Registry } from 'prom-client';

/** The state of the tokens, and how many requests were rejected for their tokens, by reason. */
export interface AuthState {
  /** The tokens file is invalid, and the last valid tokens are in force. */
  readonly isStale: boolean;
  /** The tokens file is missing or empty, and every request is rejected. */
  readonly isGone: boolean;
  readonly rejections: Readonly<Record<string, number>>;
}

/** Metrics of the tokens and of requests without a valid token. */
export function authMetrics(registry: Registry, state: AuthState): void {
  const registers = [registry];
  new Counter({
    name: 'ratelimit_auth_rejections_total',
    help: 'Requests rejected for their tokens, by reason.',
    labelNames: ['reason'],
    registers,
    collect() {
      this.reset();
      for (const [reason, count] of Object.entries(state.rejections)) this.inc({ reason }, count);
    },
  });
  new Gauge({
    name: 'ratelimit_tokens_stale',
    help: '1 while the tokens file is invalid and the last valid tokens are in force.',
    registers,
    collect() {
      this.set(state.isStale ? 1 : 0);
    },
  });
  new Gauge({
    name: 'ratelimit_tokens_gone',
    help: '1 while the tokens file is missing or empty and every request is rejected.',
    registers,
    collect() {
      this.set(state.isGone ? 1 : 0);
    },
  });
}
