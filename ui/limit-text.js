// What a limit allows.

import { count, duration } from './text.js';

/** How much a limit allows in how long, or at once if it counts only what is held. */
export function allowance({ maximum, counts, windowMillis, algorithm: { calendar }, isHeldOnly }) {
  if (isHeldOnly) return `${count(maximum)} at once`;
  const per = calendar
    ? `calendar ${calendar.unit} of ${calendar.timeZone}`
    : duration(windowMillis);
  return `${count(maximum)}${counts === 'requests' ? ' requests' : ''} per ${per}`;
}

/** How much a limit allows, by which algorithm, and of which checks. */
export function limitText(limit) {
  const { algorithm, lanes, keepsReleased, maxima } = limit;
  const parts = [
    allowance(limit),
    !algorithm.calendar && !limit.isHeldOnly && algorithmText(algorithm),
    lanes && `only ${lanes.length === 1 ? 'lane' : 'lanes'} ${lanes.join(', ')}`,
    keepsReleased && 'releases return nothing',
    maxima &&
      [
        'for each group',
        ...maxima.map(([group, most]) => `${count(most)} for ${group || 'no group'}`),
      ].join(', '),
  ];
  return parts.filter(Boolean).join(', ');
}

/** Its name, and its parameter, as rules have them. */
function algorithmText({ name, ...parameters }) {
  const texts = Object.entries(parameters).map(([field, value]) => `${field} ${count(value)}`);
  return [name, ...texts].join(', ').replaceAll('_', ' ');
}
