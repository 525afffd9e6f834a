import { BOUNDS } from '../../limiter/bounds.js';

/** Commas in quotes part nothing. */
const PREFERENCES = /(?:[^",]|"(?:[^"\\]|\\.)*")+/g;
const WAIT = /^\s*wait\s*=\s*(?:(\d{1,15})|"(\d{1,15})")\s*(?:;.*)?$/i;
/** No good header is longer, and one of many quotes would take long to read. */
const MOST_CHARACTERS = 256;

/**
 * The seconds of `wait=N` in a Prefer header: how long its sender is ready to wait for the answer. Undefined where
 * there is none that can be fulfilled: a preference is no demand. https://www.rfc-editor.org/rfc/rfc7240#section-4.3
 */
export function preferredWaitSeconds(prefer: string | undefined): number | undefined {
  if (prefer === undefined || prefer.length > MOST_CHARACTERS) return undefined;
  for (const preference of prefer.match(PREFERENCES) ?? []) {
    const [, plain, quoted] = WAIT.exec(preference) ?? [];
    const seconds = Number(plain ?? quoted ?? NaN);
    // Of several, the first counts.
    if (!Number.isNaN(seconds)) {
      return seconds * 1000 <= BOUNDS.maxWaitMillis.max ? seconds : undefined;
    }
  }
  return undefined;
}
