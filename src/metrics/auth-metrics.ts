import { Counter, type Registry } from 'prom-client';

import { flag } from './flag.js';

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
  new Counter({
    name: 'ratelimit_auth_rejections_total',
    help: 'Requests rejected for their tokens, by reason.',
    labelNames: ['reason'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [reason, count] of Object.entries(state.rejections)) this.inc({ reason }, count);
    },
  });
  flag(
    registry,
    'ratelimit_tokens_stale',
    '1 while the tokens file is invalid and the last valid tokens are in force.',
    () => state.isStale,
  );
  flag(
    registry,
    'ratelimit_tokens_gone',
    '1 while the tokens file is missing or empty and every request is rejected.',
    () => state.isGone,
  );
}
