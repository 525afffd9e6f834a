import { setImmediate as nextTick } from 'node:timers/promises';

import type { Decision } from '../../../../src/limiter/limiter.js';
import { ownLimit } from '../../../../src/limiter/limits.js';
import { restTaker } from '../../../../src/service/deciding/rest-of-window.js';

const LIMIT = { ...ownLimit(1000, 8), remaining: 3, resetMillis: 500 };
const DENIED: Decision = { outcome: 'denied', reason: 'limit_reached', quota: { limits: [LIMIT] } };

function watchedReports() {
  const reported: string[] = [];
  const take = restTaker({
    reportRemaining: (key) => {
      reported.push(key);
      return Promise.resolve({ remaining: 0 });
    },
  });
  return { reported, take: (key: string) => take(DENIED, { key, hits: 5 }) };
}

test('the denials of a key in a tick share a report, and each says that nothing is left', async () => {
  const { reported, take } = watchedReports();
  const decisions = await Promise.all([take('a'), take('a'), take('b')]);

  expect(reported).toEqual(['a', 'b']);
  expect(decisions).toEqual(
    [1, 2, 3].map(() => ({ ...DENIED, quota: { limits: [{ ...LIMIT, remaining: 0 }] } })),
  );
});

test('a denial of a later tick has a report of its own: another window may have begun', async () => {
  const { reported, take } = watchedReports();
  await take('a');
  await nextTick();
  await take('a');

  expect(reported).toEqual(['a', 'a']);
});
