import { systemClock } from '../../../../src/common/clock.js';
import { Fleet, type OtherReport } from '../../../../src/service/fleet/fleet.js';
import { WatchedKeys } from '../../../../src/service/fleet/watched-keys.js';

const REPORT = {
  ...{ replica: 'this', uptimeMillis: 1, waiting: 0, rules: 'none', denied: [] },
  decisions: { approved: 0, denied: 0, shadowed: 0, withdrawn: 0, failed: 0 },
};

test('asks one question at a time, and those who come meanwhile share the next one', async () => {
  const watchedKeys = new WatchedKeys({ limiter: { waitingOf: () => 0 }, clock: systemClock });
  const questions: { keys: readonly string[]; answer: (reports: OtherReport[]) => void }[] = [];
  const fleet = new Fleet({
    report: () => Promise.resolve(REPORT),
    watchedKeys,
    open: () => ({
      read: (keys) => new Promise((answer) => questions.push({ keys, answer })),
      readPages: () => Promise.resolve({}),
    }),
  });
  const looks = [fleet.look('first')];
  await Promise.resolve();
  const others = Array.from({ length: 20 }, (_, i) => `other ${i}`);
  looks.push(...others.map((key) => fleet.look(key)));
  await Promise.resolve();
  expect(questions.map(({ keys }) => keys)).toEqual([['first']]);

  questions[0]!.answer([]);
  await looks[0];
  expect(questions.map(({ keys }) => keys)).toEqual([['first'], ['first', ...others]]);
  questions[1]!.answer([]);
  await Promise.all(looks);
  watchedKeys.close();
});
