import { redisProgram } from '../support/redis-process.js';
import { endEverythingAfterwards } from '../support/chaos/end-everything.js';
import { say } from '../support/chaos/expect-no-violations.js';
import { runSoak } from '../support/chaos/soak/run-soak.js';

endEverythingAfterwards();
const describeWhere = redisProgram() === undefined ? describe.skip : describe;

describeWhere('some seconds of load', () => {
  test('leave no keys, handles or memory behind', async () => {
    const seed = Number(process.env.CHAOS_SEED ?? 1);
    say(`soak: seed ${seed}`);
    const { violations, requests } = await runSoak(seed, 4);
    expect(violations).toEqual([]);
    expect(requests).toBeGreaterThan(0);
  });
});
