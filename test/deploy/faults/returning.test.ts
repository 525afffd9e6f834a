import { chaosOptions } from '../../support/chaos/chaos-options.js';
import { endEverythingAfterwards } from '../../support/chaos/end-everything.js';
import { expectNothingWrong } from '../../support/chaos/expect-no-violations.js';
import { RETURNING_KEYS } from '../../support/chaos/returning/keys.js';
import { runReturning } from '../../support/chaos/returning/run-returning.js';
import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { extent, IS_FULL } from '../../support/extent.js';

/** The same one at every run, so that a change is judged by what it changes; others by `npm run test:chaos`. */
const KNOWN_SEED = 11;
const TIMEOUT_MILLIS = 360_000;
/** What scripts do in any round for requests of each key, and for some requests. */
const OF_EACH_KEY = ['joined', 'owned', 'granted'];
const OF_SOME = ['confirmed', 'lapsed', 'withdrawn'];

endEverythingAfterwards();
const options = chaosOptions(process.env, { seconds: extent(6, 20), rounds: 1 });
const seed = process.env.CHAOS_SEED ? options.seed : KNOWN_SEED;

describeWithRedisProgram('clients that wait, leave and return while replicas fail', () => {
  test(
    `keep their places and their approvals, and get the answers that these have (seed ${seed})`,
    async () => {
      const report = await runReturning({ seed, seconds: options.seconds, isQuick: !IS_FULL });
      expectNothingWrong(report, '--returning');
      const happened = Object.keys(report.happenings);
      const ofEachKey = RETURNING_KEYS.flatMap(({ key }) =>
        OF_EACH_KEY.map((what) => `${key}: ${what}`),
      );
      expect(happened).toEqual(expect.arrayContaining(ofEachKey));
      for (const what of OF_SOME)
        expect(happened).toContainEqual(expect.stringMatching(`: ${what}$`));
      expect(Object.keys(report.faults)).not.toEqual([]);
    },
    TIMEOUT_MILLIS,
  );
});
