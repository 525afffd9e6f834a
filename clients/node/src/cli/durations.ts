import { CommandLineError } from './errors.js';

const MILLIS_OF: Readonly<Record<string, number>> = {
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
};
/** From here on, a time is shown in the next larger unit. */
const MOST_OF_UNIT = 120;

/**
 * Reads a duration such as `30s`, in ms.
 * @param name of what has the value, for the error
 * @throws CommandLineError for any other text
 */
export function parseDuration(name: string, text: string): number {
  const [, digits, unit] = /^(\d{1,9})(ms|s|m|h|d)$/.exec(text) ?? [];
  const millis = MILLIS_OF[unit ?? ''];
  if (millis !== undefined) return Number(digits) * millis;
  const shown = JSON.stringify(text);
  throw new CommandLineError(`${name} must be a duration such as 30s, 10m or 2h, not ${shown}`);
}

/** A time for people, rounded up: `40 s`, `12 min` or `3 h`. */
export function shownTime(millis: number): string {
  const seconds = Math.ceil(millis / 1000);
  if (seconds < MOST_OF_UNIT) return `${seconds} s`;
  const minutes = Math.ceil(seconds / 60);
  return minutes < MOST_OF_UNIT ? `${minutes} min` : `${Math.ceil(minutes / 60)} h`;
}
