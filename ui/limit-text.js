// What a limit allows, and how full it is.

import { count, duration, plural } from './text.js';

/** How full a limit is; 1 is full. */
export function fillOf(limit) {
  const capacity = capacityOf(limit);
  return capacity === 0 ? 1 : limit.used / capacity;
}

/** How much may count of a limit at once. */
function capacityOf({ maximum, algorithm }) {
  return algorithm.name === 'token_bucket' ? Math.min(algorithm.burst, maximum) : maximum;
}

/** How much a limit allows in how long. */
export function allowance({ maximum, counts, windowMillis, algorithm: { calendar } }) {
  const per = calendar
    ? `calendar ${calendar.unit} of ${calendar.timeZone}`
    : duration(windowMillis);
  return `${count(maximum)}${counts === 'requests' ? ' requests' : ''} per ${per}`;
}

/** How much a limit allows, by which algorithm, and of which checks. */
export function limitText(limit) {
  const { algorithm, lanes, keepsReleased } = limit;
  const parts = [
    allowance(limit),
    ALGORITHMS[algorithm.name](algorithm),
    lanes && `only ${lanes.length === 1 ? 'lane' : 'lanes'} ${lanes.join(', ')}`,
    keepsReleased && 'releases return nothing',
  ];
  return parts.filter(Boolean).join(', ');
}

const ALGORITHMS = {
  fixed_window: ({ calendar }) => !calendar && 'fixed window',
  sliding_window: ({ steps }) => `sliding window of ${plural(steps, 'step', 'steps')}`,
  token_bucket: ({ burst }) => `token bucket, burst ${count(burst)}`,
};
