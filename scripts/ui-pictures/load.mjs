// The callers of the pictures: some keys have room, some deny checks, and some have many waiters or holders.
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
    {
      key_pattern: 'deploy',
      name: 'deployments',
      max_requests_per_window: 2,
      window_millis: 3_600_000,
    },
    { key_pattern: 'signup', name: 'signups', max_requests_per_window: 5, window_millis: 60_000 },
  ],
};

const TICK_MILLIS = 100;
const PAUSE = { key: 'vendor/maps', pauseMillis: 600_000 };
const HOLD_MILLIS = 60_000;

/**
 * How many checks a second each key gets, whether its callers wait, and for how long each holds its approval, if it does.
 */
const CALLERS = [
  { key: 'vendor/payments', perSecond: 1.1, canWait: true },
  { key: 'vendor/geocoder', perSecond: 3.4, canWait: true },
  { key: 'vendor/search', perSecond: 0.5, canWait: true },
  { key: 'vendor/maps', perSecond: 0.4 },
  { key: 'deploy', perSecond: 0.4, canWait: true, workMillis: 6000 },
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
  const send = (method, path, onAnswer) => {
    turn += 1;
    const sent = request(`${urls[turn % urls.length]}/rate/${path}`, { method, agent });
    sent.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part) => (text += part));
      response.on('end', () => response.statusCode === 200 && onAnswer?.(JSON.parse(text)));
    });
    // Requests that wait at the stop get no answer.
    sent.on('error', () => undefined);
    sent.end();
  };
  const ask = ({ key, canWait = false, workMillis }) => {
    const path = encodeURIComponent(key);
    if (workMillis === undefined) {
      send('POST', `${path}?canWait=${canWait}`);
      return;
    }
    const hold = `holdMillis=${HOLD_MILLIS}&holder=ci-runner-${(turn % 9) + 1}`;
    send('POST', `${path}?canWait=${canWait}&${hold}`, ({ request_id: id }) => {
      setTimeout(() => send('DELETE', `${path}/${id}`), workMillis);
    });
  };
  send('PUT', `${encodeURIComponent(PAUSE.key)}?pauseMillis=${PAUSE.pauseMillis}`);
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
