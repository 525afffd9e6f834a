import { lingeringNames } from './expiring-names.js';
import { describeWithRedisProgram } from './describe-with-redis-program.js';
import { uniqueKey } from './unique-key.js';
import { useRedis } from './use-redis.js';

describeWithRedisProgram('the check for lingering names', () => {
  const redis = useRedis();
  const look = (pattern: string): Promise<string[]> =>
    lingeringNames((command, ...args) => redis.client.call(command, ...args), pattern);

  test('accepts a name that expires by itself', async () => {
    const name = uniqueKey();
    await redis.client.set(name, '', 'PX', 30_000);
    expect(await look(name)).toEqual([]);
  });

  test('reports a name without an expiry, or with a late one', async () => {
    const name = uniqueKey();
    await redis.client.set(`${name}-1`, '');
    await redis.client.set(`${name}-2`, '', 'PX', 3_600_000);
    expect((await look(`${name}*`)).sort()).toEqual([
      `${name}-1 never expires`,
      `${name}-2 expires in more than 60000 ms`,
    ]);
  });

  test('reports a name that is extended or created during the check', async () => {
    const name = uniqueKey();
    await redis.client.set(`${name}-1`, '', 'PX', 20_000);
    const looking = look(`${name}*`);
    // These commands are on the same connection, so they come after the first look.
    await redis.client.pexpiretime(`${name}-1`);
    await redis.client.pexpire(`${name}-1`, 30_000);
    await redis.client.set(`${name}-2`, '', 'PX', 30_000);
    expect((await looking).sort()).toEqual([
      `${name}-2 was made`,
      `the end of ${name}-1 was put off`,
    ]);
  });
});
