// Loaded into a replica by `NODE_OPTIONS`: the days, weeks and months of its calendars take seconds, as CHAOS_CALENDARS says,
// so that many of them begin in a round. `declared/short-calendars.ts` has the other account of them.
import { NOMINAL_MILLIS } from '../../../dist/limiter/calendar/calendar.js';
import { ZonedCalendar } from '../../../dist/limiter/calendar/zoned-calendar.js';

const { partMillis, from } = JSON.parse(process.env.CHAOS_CALENDARS);
/** The parts of each period: a usual one, a shorter and a longer one, as by changes of the clock. */
const PARTS = [24, 23, 25];
const PARTS_OF_ALL = 72;

for (const [unit, millis] of Object.entries(partMillis)) {
  NOMINAL_MILLIS[unit] = Math.max(...PARTS) * millis;
}

ZonedCalendar.prototype.windowAt = function (now) {
  const lengths = PARTS.map((parts) => parts * partMillis[this.unit]);
  const cycle = PARTS_OF_ALL * partMillis[this.unit];
  const begun = from[this.timeZone];
  let start = begun + Math.floor((now - begun) / cycle) * cycle;
  let index = 0;
  for (; start + lengths[index] <= now; index += 1) start += lengths[index];
  const end = start + lengths[index];
  return { start, end, nextEnd: end + lengths[(index + 1) % lengths.length] };
};
