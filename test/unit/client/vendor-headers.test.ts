import { readFileSync } from 'node:fs';

import { remainingIn, type VendorRemaining } from '../../../src/client/calls/vendor-headers.js';

/** What the Python client reads as well. */
const { now, answers, unreadable } = JSON.parse(
  readFileSync(new URL('../../support/client/vendor-headers.json', import.meta.url), 'utf8'),
) as {
  readonly now: string;
  readonly answers: readonly {
    readonly title: string;
    readonly headers: Readonly<Record<string, string>>;
    readonly says: readonly VendorRemaining[];
  }[];
  readonly unreadable: Readonly<Record<'remaining' | 'reset', readonly string[]>>;
};

/** As `Headers` that take any text. */
const read = (headers: Readonly<Record<string, string>>) =>
  remainingIn({ get: (name) => headers[name] ?? null }, Date.parse(now));

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
