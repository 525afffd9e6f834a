import { ownLimit } from '../../src/limiter/limits.js';
import { encodeLimits, limitsIn } from '../../src/redis/scripts/limits-codec.js';
import { type FurtherLimit, furtherLimit } from './limits.js';
import { type CalendarNamed, withCalendar } from './rules-in.js';

export type { FurtherLimit } from './limits.js';

const OWN = '0:0:0';

/** The part of a text of limits that has the further ones: a comma and the limit, for each. */
export function encodeFurther(further: readonly FurtherLimit[]): string {
  const text = encodeLimits({
    limits: [ownLimit(0, 0), ...further.map(furtherLimit)],
    maxRequestsInQueue: 0,
  });
  return text.slice(OWN.length);
}

/**
 * The further limits in a text of limits, or in a part of it that may have no comma before them. Those that each group has to
 * itself come last.
 * @throws Error for a calendar, unless the caller says which it is
 */
export function furtherIn(text: string, calendarNamed?: CalendarNamed): FurtherLimit[] {
  const further = text.split(',').filter((part) => part.includes('=') && !part.startsWith('='));
  const { limits, limitsOfGroups } = limitsIn([OWN, ...further].join());
  return [...limits.slice(1), ...limitsOfGroups].map((named) => {
    const { name = '', algorithm, ...limit } = withCalendar(named, calendarNamed);
    const isPlain = algorithm.name === 'fixed_window' && !algorithm.calendar;
    return isPlain ? { ...limit, name } : { ...limit, name, algorithm };
  });
}
