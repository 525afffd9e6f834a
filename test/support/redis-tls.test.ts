import { Redis } from 'ioredis';

import { type Authority, createAuthority } from './certificates.js';
import { describeWithRedisProgram } from './describe-with-redis-program.js';
import type { ClientOptions } from './redis-process.js';
import { startRedisTls } from './redis-tls.js';

describeWithRedisProgram('a Redis with TLS', () => {
  let authority: Authority;
  beforeAll(async () => {
    authority = await createAuthority();
  });
  afterAll(() => authority.remove());

  const ping = async (url: string, options: ClientOptions): Promise<string> => {
    const client = new Redis(url, { retryStrategy: null, ...options });
    client.on('error', () => undefined);
    try {
      return await client.ping();
    } finally {
      // To disconnect a closed connection would leave a timer behind.
      if (client.status !== 'end') client.disconnect();
    }
  };
  const certificateOf = async (issuer: Authority) => {
    const { cert, key } = await issuer.issueClientCertificate('client');
    return { cert, key };
  };

  test('serves a client with a certificate of its authority, and no other', async () => {
    const { url } = await startRedisTls(authority);
    const { ca } = authority;
    expect(url).toMatch(/^rediss:/);
    expect(await ping(url, { tls: { ca, ...(await certificateOf(authority)) } })).toBe('PONG');

    await expect(ping(url, { tls: { ca } })).rejects.toThrow('closed');
    await expect(ping(url.replace('rediss', 'redis'), {})).rejects.toThrow('closed');
    const another = await createAuthority();
    const foreign = await certificateOf(another);
    await another.remove();
    await expect(ping(url, { tls: { ca, ...foreign } })).rejects.toThrow('closed');
  });

  test('applies the rules of its user, and rejects clients without a password', async () => {
    const redis = await startRedisTls(authority, {
      user: { username: 'limited', password: 'secret', rules: '~mine:* +@all' },
    });
    const tls = { ca: authority.ca, ...(await certificateOf(authority)) };
    const client = new Redis(redis.address, { tls, username: 'limited', password: 'secret' });
    expect(await client.set('mine:1', 'value')).toBe('OK');
    await expect(client.set('another', 'value')).rejects.toThrow('NOPERM');
    client.disconnect();
    await redis.command('ACL', 'LOG', 'RESET');

    expect(await redis.command('GET', 'mine:1')).toBe('value');
    await expect(ping(redis.address, { tls })).rejects.toThrow('NOAUTH');
  });
});
