import { Redis } from 'ioredis';

import { describeWithRedisProgram } from './describe-with-redis-program.js';
import { extent } from './extent.js';
import { type RedisSentinel, startRedisSentinel } from './redis-sentinel.js';

describeWithRedisProgram('Redis with Sentinels', () => {
  let redis: RedisSentinel;
  beforeAll(async () => {
    redis = await startRedisSentinel();
  });

  test('a failover that is asked for makes a replica the primary, and the primary a replica', async () => {
    const before = await redis.primary();
    const after = await redis.failover();
    expect(after).not.toBe(before);
    expect(await redis.primary()).toBe(after);

    await redis.settled();
    expect(await before.command('ROLE')).toContain(after.port);
  });

  test.each(extent(['killed'], ['killed', 'suspended']))(
    'a primary that is %s is replaced',
    async (fate) => {
      const before = await redis.primary();
      await before.command('SET', 'name', fate);
      await before.command('WAIT', 2, 0);
      if (fate === 'killed') await before.kill();
      else before.signal('SIGSTOP');
      const after = await redis.primary();
      expect(after).not.toBe(before);
      expect(await after.command('GET', 'name')).toBe(fate);

      if (fate === 'killed') await before.restart({ withData: true });
      else before.signal('SIGCONT');
      await redis.settled();
      expect(await redis.primary()).toBe(after);
    },
  );
});

describeWithRedisProgram('Redis with Sentinels and passwords', () => {
  test('fails over, and serves only clients that know the passwords of Sentinels and Redis', async () => {
    const passwords = { password: 'secret', sentinelPassword: 'another' };
    const redis = await startRedisSentinel(passwords);
    const primary = await redis.failover();
    const client = new Redis({
      name: redis.masterName,
      sentinels: redis.sentinels.map(({ port }) => ({ host: '127.0.0.1', port })),
      ...passwords,
    });
    expect(await client.info('server')).toContain(`tcp_port:${primary.port}`);
    client.disconnect();

    for (const server of [primary, redis.sentinels[0]!]) {
      const stranger = server.connect({ password: 'unknown', retryStrategy: null });
      stranger.on('error', () => undefined);
      await expect(stranger.ping()).rejects.toThrow(/WRONGPASS|closed/);
      await server.command('ACL', 'LOG', 'RESET');
    }
  });
});
