import { setImmediate as nextTick } from 'node:timers/promises';

import { AtATime } from '../../../../src/redis/waiting/at-a-time.js';

test('two jobs run at a time and the others follow in their order, even if one fails', async () => {
  const line = new AtATime(2);
  const begun: number[] = [];
  const ends: ((error?: Error) => void)[] = [];
  const run = (i: number): Promise<number> =>
    line.run(() => {
      begun.push(i);
      return new Promise((resolve, reject) => {
        ends[i] = (error) => {
          if (error) reject(error);
          else resolve(i);
        };
      });
    });
  const jobs = [0, 1, 2, 3, 4].map(run);
  const all = Promise.allSettled(jobs);
  await nextTick();
  expect(begun).toEqual([0, 1]);
  ends[1]!(new Error('failed'));
  await nextTick();
  expect(begun).toEqual([0, 1, 2]);
  ends[0]!();
  ends[2]!();
  await nextTick();
  expect(begun).toEqual([0, 1, 2, 3, 4]);
  ends[3]!();
  ends[4]!();
  const succeeded = (await all).map(({ status }) => status === 'fulfilled');
  expect(succeeded).toEqual([true, false, true, true, true]);

  const later = [5, 6, 7].map(run);
  await nextTick();
  expect(begun).toEqual([0, 1, 2, 3, 4, 5, 6]);
  ends[5]!();
  ends[6]!();
  await nextTick();
  ends[7]!();
  expect(await Promise.all(later)).toEqual([5, 6, 7]);
});
