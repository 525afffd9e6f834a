import { ScriptHarness } from '../../support/script-harness.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();

test('a Redis that forgets its scripts between any two calls is not noticed', async () => {
  const key = await ScriptHarness.create(redis.client);
  const replica = key.replica('r1');
  const forget = (): Promise<unknown> => redis.client.script('FLUSH', 'SYNC');
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
    expect(await replica.inspect()).toMatchObject({ approved: 2, waiting: 1 });
    await key.setTime(round * 10_000 + 1000);
    await forget();
    expect((await replica.settle()).granted).toEqual([ids[4]]);
  }
});

test('a script is sent as a whole once, and by its SHA-1 from then on', async () => {
  const key = await ScriptHarness.create(redis.client);
  const replica = key.replica('r1');
  await redis.client.script('FLUSH', 'SYNC');
  await redis.client.config('RESETSTAT');
  for (const id of ['a', 'b', 'c']) await replica.check([id]);
  const stats = await redis.client.info('commandstats');
  expect(/cmdstat_eval:calls=(\d+)/.exec(stats)?.[1]).toBe('1');
  expect(/cmdstat_evalsha:calls=(\d+)/.exec(stats)?.[1]).toBe('3');
});
