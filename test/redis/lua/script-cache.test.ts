import { asServer, forgetScripts, textsSent } from '../../support/forget-scripts.js';
import { FORM } from '../../support/redis-user.js';
import { ScriptHarness } from '../../support/script-harness.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();

test('a Redis that forgets its scripts between any two calls is not noticed', async () => {
  const key = await ScriptHarness.create(redis.client);
  const replica = key.replica('r1');
  const forget = (): Promise<void> => forgetScripts(asServer(redis.client));
  for (let round = 0; round < 2; round += 1) {
    const ids = ['a', 'b', 'c', 'd', 'e'].map((id) => `${id}${round}`);
    await key.setTime(round * 10_000);
    await forget();
    expect(await replica.checkOrWait(ids)).toMatchObject(['approved', 'approved', {}, {}, {}]);
    await forget();
    expect(await replica.release(ids[0]!)).toBe(true);
    await forget();
    await replica.withdraw([ids[3]!]);
    await forget();
    expect(await replica.inspect()).toMatchObject({ used: 2, waiting: 1 });
    await key.setTime(round * 10_000 + 1000);
    await forget();
    expect((await replica.settle()).granted).toEqual([ids[4]]);
  }
});

test('Redis gets the text of a script once', async () => {
  const key = await ScriptHarness.create(redis.client);
  const replica = key.replica('r1');
  await forgetScripts(asServer(redis.client));
  await redis.client.config('RESETSTAT');
  for (const id of ['a', 'b', 'c']) await replica.check([id]);
  // The first run fails, since its script is not known. A function runs again, while EVAL runs what it brings.
  expect(await textsSent(asServer(redis.client))).toEqual({
    texts: 1,
    runs: FORM === 'function' ? 4 : 3,
  });
});
