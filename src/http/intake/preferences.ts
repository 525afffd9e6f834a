import { BOUNDS } from '../../limiter/bounds.js';

/** Commas in quotes do not separate preferences. */
const PREFERENCES = /(?:[^",]|"(?:[^"\\]|\\.)*")+/g;
const WAIT = /^\s*wait\s*=\s*(?:(\d{1,15})|"(\d{1,15})")\s*(?:;.*)?$/i;
/** No valid header is longer, and a header of many quotes would take long to parse. */
const MOST_CHARACTERS = 256;

/**
 * The seconds of `wait=N` in a Prefer header: how long the client is ready to wait for the answer. Undefined if there
 * is no such preference, or it can't be met: a preference may be ignored.
 * https://www.rfc-editor.org/rfc/rfc7240#section-4.3
 */
export function preferredWaitSeconds(prefer: string | undefined): number | undefined {
  if (prefer === undefined || prefer.length > MOST_CHARACTERS) return undefined;
  for (const preference of prefer.match(PREFERENCES) ?? []) {
    const [, plain, quoted] = WAIT.exec(preference) ?? [];
    const seconds = Number(plain ?? quoted ?? NaN);
    // If there are several, the first one counts.
    if (!Number.isNaN(seconds)) {
      return seconds * 1000 <= BOUNDS.maxWaitMillis.max ? seconds : undefined;
    }
  }
  return undefined;
}
