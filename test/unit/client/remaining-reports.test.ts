import { readFileSync } from 'node:fs';

import { RemainingReports } from '../../../clients/node/src/calls/remaining-reports.js';
import {
  type ReportedLimits,
  type ReportOptions,
  SluiceError,
  SluiceUnavailableError,
} from '../../../clients/node/src/index.js';
import {
  remainingIn,
  retryMillisIn,
  type VendorRemaining,
} from '../../../clients/node/src/calls/vendor-headers.js';
import { quotaHeaders, quotaOf } from '../../../clients/node/src/calls/quota.js';

/** A rule, whose name the own limit has, may be called as a further limit. */
const BELIEVED = [
  { name: 'tokens', limit: 10, remaining: 9, resetSeconds: 1 },
  { name: 'tokens', limit: 1000, remaining: 900, resetSeconds: 1 },
];
const LIMITS = { requests: 'default', tokens: 'tokens' };

/** Reports with a clock of the test, and what they have sent. */
function useReports(limits: ReportedLimits, fail?: () => Error | undefined) {
  let now = 0;
  const sent: string[] = [];
  const options: ReportOptions[] = [];
  const client = {
    reportRemaining: (key: string, remaining: number, given: ReportOptions = {}) => {
      options.push(given);
      sent.push(`${key} ${given.limit ?? 'own'} ${remaining} in ${given.resetMillis}`);
      const error = fail?.();
      return error ? Promise.reject(error) : Promise.resolve();
    },
  };
  let timers: { readonly at: number; readonly work: () => void }[] = [];
  const reports = new RemainingReports(
    client,
    limits,
    undefined,
    () => now,
    (work, millis) => void timers.push({ at: now + millis, work }),
  );
  const report = (headers: Record<string, string>, key = 'key', quota = BELIEVED) =>
    reports.report(key, new Headers(headers), quota);
  return {
    report,
    sent,
    options,
    passMillis: (millis: number) => {
      now += millis;
      const due = timers.filter(({ at }) => at <= now);
      timers = timers.filter(({ at }) => at > now);
      for (const { work } of due) work();
    },
  };
}

const requests = (remaining: number, reset = '2s') => ({
  'x-ratelimit-remaining-requests': String(remaining),
  'x-ratelimit-reset-requests': reset,
});
const tokens = (remaining: number) => ({
  'x-ratelimit-remaining-tokens': String(remaining),
  'x-ratelimit-reset-tokens': '6m0s',
});

test('what remains is reported if the approval does not say what Sluice believes', async () => {
  const { report, sent } = useReports(LIMITS);
  await report(requests(8), 'key', []);
  expect(sent).toEqual(['key own 8 in 2000']);
});

test('of all that is said of one limit, the least is reported, and the later reset of two', async () => {
  const { report, sent } = useReports({ ...LIMITS, inputTokens: 'tokens' });
  const reset = new Date(Date.now() + 90_000_000).toISOString();
  await report({
    ratelimit: '"second";r=3;t=1, "hour";r=2;t=3600, "day";r=2;t=7200, "week";r=4;t=86400',
    ...tokens(50),
    'anthropic-ratelimit-input-tokens-remaining': '40',
    'anthropic-ratelimit-input-tokens-reset': reset,
  });
  expect(sent).toEqual(['key own 2 in 7200000', 'key tokens 40 in 86400000']);
});

test('a limit of a key gets at most one report a second, of the least at its end', async () => {
  const { report, sent, passMillis } = useReports(LIMITS);
  await Promise.all([report(requests(5)), report(requests(4, '9s'))]);
  passMillis(400);
  await report(requests(3, '5s'));
  await report(requests(3, '4s'));
  await report({ ...requests(7, '8s'), ...tokens(1) });
  await report(requests(3), 'other');
  passMillis(599);
  expect(sent).toEqual(['key own 5 in 2000', 'key tokens 1 in 360000', 'other own 3 in 2000']);

  passMillis(1);
  expect(sent.slice(3)).toEqual(['key own 3 in 4400']);
  await report(requests(2));
  passMillis(999);
  expect(sent.slice(4)).toEqual([]);
  passMillis(1);
  expect(sent.slice(4)).toEqual(['key own 2 in 1000']);
  passMillis(1000);
  expect(sent.slice(5)).toEqual([]);
});

test('nothing remains is reported at once, and again at the end of the second', async () => {
  const { report, sent, passMillis } = useReports(LIMITS);
  await report(requests(8));
  passMillis(100);
  await report(requests(7));
  await report(requests(0, '30s'));
  expect(sent).toEqual(['key own 8 in 2000', 'key own 0 in 30000']);

  passMillis(900);
  await report(requests(0, '31s'));
  expect(sent.slice(2)).toEqual([]);
  passMillis(100);
  expect(sent.slice(2)).toEqual(['key own 0 in 30900']);
});

test('what resets before the end of the second is not reported then', async () => {
  const { report, sent, passMillis } = useReports(LIMITS);
  await report(requests(5));
  await report(requests(3, '1s'));
  await report(requests(4, '1001ms'));
  await report({ 'x-ratelimit-remaining': '6' });
  passMillis(1000);
  expect(sent.slice(1)).toEqual(['key own 4 in 1']);
});

test('a report takes no longer than until the next one may be sent', async () => {
  const { report, options } = useReports(LIMITS);
  await report(requests(5));
  expect(options).toMatchObject([{ timeoutMillis: 1000 }]);
});

describe('a limit that rejects a report', () => {
  const rejecting = () => useReports(LIMITS, () => new SluiceError('no', { status: 400 }));

  test('has its key paused while nothing remains, and gets no report for a minute', async () => {
    const { report, sent, passMillis } = rejecting();
    expect(await report(requests(5))).toBe(0);
    passMillis(999);
    expect(await report(requests(4))).toBe(0);
    expect(await report(requests(0))).toBe(2000);
    expect(await report(requests(0))).toBe(0);
    passMillis(59_000);
    expect(await report(requests(0, '3s'))).toBe(3000);
    expect(sent).toEqual(['key own 5 in 2000']);

    passMillis(1000);
    expect(await report(requests(4))).toBe(0);
    expect(sent).toEqual(['key own 5 in 2000', 'key own 4 in 2000']);
  });

  test('has its key paused at once if nothing remains, for the longest reset', async () => {
    const { report, sent } = rejecting();
    expect(await report({ ...requests(0), ...tokens(0) })).toBe(360_000);
    expect(sent).toHaveLength(2);
  });

  test('has its key not paused without a time', async () => {
    const { report } = rejecting();
    expect(await report({ 'x-ratelimit-remaining': '0' })).toBe(0);
  });

  test('does not keep reports from others', async () => {
    const { report, sent, passMillis } = rejecting();
    await report(requests(5));
    passMillis(1000);
    await report({ ...requests(4), ...tokens(3) });
    await report(requests(4), 'other');
    expect(sent.slice(1)).toEqual(['key tokens 3 in 360000', 'other own 4 in 2000']);
  });
});

test('a report that fails is ignored, and the next one is sent', async () => {
  const lost = new SluiceUnavailableError('lost', { mayHaveCounted: true });
  const { report, sent, passMillis } = useReports(LIMITS, () => lost);
  expect(await report(requests(0))).toBe(0);
  passMillis(1000);
  expect(await report(requests(0))).toBe(0);
  expect(sent).toHaveLength(2);
});

/** What the clients for Python and Go read as well. */
const { now, answers, retries, unreadable } = JSON.parse(
  readFileSync(new URL('../../support/client/vendor-headers.json', import.meta.url), 'utf8'),
) as {
  readonly now: string;
  readonly answers: readonly {
    readonly title: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly says: readonly VendorRemaining[];
  }[];
  readonly retries: readonly {
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly millis: number;
  }[];
  readonly unreadable: Readonly<Record<'remaining' | 'reset', readonly string[]>>;
};

/** As `Headers` that take any text. */
const withGet = (headers: Readonly<Record<string, string>>) => ({
  get: (name: string) => headers[name] ?? null,
});
const read = (headers: Readonly<Record<string, string>>) =>
  remainingIn(withGet(headers), Date.parse(now));

test.each(retries)('an answer $status with $headers asks for $millis ms', (answer) => {
  const { status, headers, millis } = answer;
  expect(retryMillisIn(status, withGet(headers), Date.parse(now))).toBe(millis);
});

test.each(answers)('reads an answer $title', ({ headers, says }) => {
  expect(read(headers)).toEqual(says);
});

test.each(unreadable.remaining)('ignores %j where a number is meant', (remaining) => {
  expect(read({ 'x-ratelimit-remaining': remaining, 'x-ratelimit-reset': '5' })).toEqual([]);
});

test.each(unreadable.reset)('reads no time from %j', (reset) => {
  expect(read({ 'x-ratelimit-remaining': '3', 'x-ratelimit-reset': reset })).toEqual([
    { unit: 'requests', remaining: 3 },
  ]);
});

test('names of headers may have capitals', () => {
  const headers = new Headers({ 'X-RateLimit-Remaining-Requests': '3' });
  expect(remainingIn(headers, 0)).toEqual([{ unit: 'requests', remaining: 3 }]);
});

const SEVERAL = [
  { name: 'default', limit: 10, remaining: 9, resetSeconds: 1, windowSeconds: 1 },
  { name: 'day', limit: 20_000, remaining: 0, resetSeconds: 86_400, windowSeconds: 86_400 },
];

const quotaIn = (policy: unknown, left: unknown) =>
  quotaOf({ headers: { 'ratelimit-policy': policy, ratelimit: left } });

test('an answer has the quota of each limit', () => {
  expect(
    quotaIn('"default";q=10;w=1, "day";q=20000;w=86400', '"default";r=9;t=1, "day";r=0;t=86400'),
  ).toEqual(SEVERAL);
});

test('a window may have no whole number of seconds, and a name any sign', () => {
  expect(quotaIn('"a \\"b\\", \\\\c";q=2', '"a \\"b\\", \\\\c";r=1;t=3')).toEqual([
    { name: 'a "b", \\c', limit: 2, remaining: 1, resetSeconds: 3 },
  ]);
});

test.each([
  ['without the headers', undefined, undefined],
  ['without what is left', '"default";q=10;w=1', undefined],
  ['of another form', '100;w=1', 'limit=100, remaining=50'],
])('an answer %s has no quota', (_, policy, left) => {
  expect(quotaIn(policy, left)).toBeUndefined();
});

test.each([[SEVERAL], [[{ name: 'a "b", \\c', limit: 2, remaining: 1, resetSeconds: 3 }]]])(
  'the headers of a quota are read as it was',
  (quota) => {
    const { 'RateLimit-Policy': policy, RateLimit: left } = quotaHeaders(quota);

    expect(quotaIn(policy, left)).toEqual(quota);
  },
);
