import type { CheckRequest } from '../limiter.js';

/** What an approval takes, and of which limits. */
export type Terms = Pick<CheckRequest, 'hits' | 'holdMillis' | 'holder' | 'list'>;

export function isHeld({ holdMillis }: Terms): boolean {
  return holdMillis !== undefined;
}
