// The callers of the pictures: some keys have room, some deny checks, and some have many waiters.
import { Agent, request } from 'node:http';

export const RULES = {
  keys: [
    {
      key_pattern: 'tenant-.*',
      key_pattern_is_regex: true,
      name: 'tenants',
      max_requests_per_window: 40,
      window_millis: 5000,
    },
    {
      key_pattern: 'vendor/.*',
      key_pattern_is_regex: true,
      name: 'vendor-quota',
      max_requests_per_window: 12,
      max_requests_in_queue: 60,
      window_millis: 20_000,
      max_requests_ceiling: 50,
    },
    { key_pattern: 'signup', name: 'signups', max_requests_per_window: 5, window_millis: 60_000 },
  ],
};

const TICK_MILLIS = 100;

/** How many checks a second each key gets, and whether its callers wait. */
const CALLERS = [
  { key: 'vendor/payments', perSecond: 1.1, canWait: true },
  { key: 'vendor/geocoder', perSecond: 3.4, canWait: true },
  { key: 'vendor/search', perSecond: 0.5, canWait: true },
  { key: 'signup', perSecond: 0.9 },
  { key: 'tenant-17/api', perSecond: 21 },
  { key: 'tenant-4/api', perSecond: 7.9 },
  { key: 'tenant-8/export', perSecond: 6 },
  { key: 'tenant-23/api', perSecond: 4.5 },
  { key: 'report', perSecond: 8 },
  { key: 'mail', perSecond: 30 },
  { key: 'login:198.51.100.7', perSecond: 2 },
  ...Array.from({ length: 36 }, (_, i) => ({
    key: `tenant-${100 + i}/api`,
    perSecond: (i % 7) / 2,
  })),
];

/** Asks the services in turn until it is stopped. @returns a function that stops it */
export function startLoad(urls) {
  const agent = new Agent({ keepAlive: true, maxSockets: 300 });
  const owed = CALLERS.map(() => 0);
  let turn = 0;
  const ask = ({ key, canWait = false }) => {
    turn += 1;
    const url = `${urls[turn % urls.length]}/rate/${encodeURIComponent(key)}?canWait=${canWait}`;
    const sent = request(url, { method: 'POST', agent });
    sent.on('response', (response) => response.resume());
    // Requests that wait at the stop get no answer.
    sent.on('error', () => undefined);
    sent.end();
  };
  const timer = setInterval(() => {
    const swing = 1 + 0.6 * Math.sin(performance.now() / 9000);
    CALLERS.forEach((caller, i) => {
      owed[i] += (caller.perSecond * swing * TICK_MILLIS) / 1000;
      for (; owed[i] >= 1; owed[i] -= 1) ask(caller);
    });
  }, TICK_MILLIS);
  return () => {
    clearInterval(timer);
    agent.destroy();
  };
}
