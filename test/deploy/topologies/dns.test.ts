import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { type Authority, createAuthority } from '../../support/certificates.js';
import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { extent } from '../../support/extent.js';
import { send } from '../../support/http-client.js';
import { type RedisProcess, startRedisProcess } from '../../support/redis-process.js';
import { startRedisTls } from '../../support/redis-tls.js';
import { AS_LIMITER_USER, limiterRules, rulesIn } from '../../support/redis-user.js';
import {
  killReplicas,
  type LogLine,
  type ReplicaProcess,
  startReplica,
} from '../../support/replica-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';

const REPLACE_DNS = new URL('../../support/replace-dns.mjs', import.meta.url);

/** The DNS of replicas, under a test's control. */
class ReplicaDns {
  readonly #file: string;

  /** @param folder for its file */
  constructor(folder: string) {
    this.#file = join(folder, uniqueKey());
    this.says({});
  }

  /** The settings for replicas that use it. */
  get settings(): Readonly<Record<string, string>> {
    return { NODE_OPTIONS: `--import ${REPLACE_DNS.href}`, DNS_FILE: this.#file };
  }

  /** @param answers for each name an address, the code of an error, or `hangs`; other names are not found */
  says(answers: Readonly<Record<string, string>>): void {
    // A replica may read the file at the same time.
    writeFileSync(`${this.#file}.new`, JSON.stringify(answers));
    renameSync(`${this.#file}.new`, this.#file);
  }
}

const PRIMARY = 'sluice-primary';
const ADDRESS = '127.0.0.1';
const folder = useTemporaryFolder();
let authority: Authority;

/** Servers that are known only by name, and the server that has the keys. */
interface Setup {
  readonly names: readonly string[];
  readonly settings: Readonly<Record<string, string>>;
  readonly server: RedisProcess;
}

async function standalone(): Promise<Setup> {
  const server = await startRedisProcess();
  return {
    names: ['redis.test'],
    settings: { REDIS_URL: `redis://redis.test:${server.port}` },
    server,
  };
}

/** A sentinel looks up the name of its primary itself, so the name must exist. */
async function sentinel(): Promise<Setup> {
  const server = await startRedisProcess();
  const { port } = await startRedisProcess({
    sentinel: true,
    userRules: rulesIn('sentinel-user'),
    configure: () => [
      'sentinel resolve-hostnames yes',
      'sentinel announce-hostnames yes',
      `sentinel monitor ${PRIMARY} localhost ${server.port} 1`,
    ],
  });
  return {
    names: ['sentinel.test', 'localhost'],
    settings: {
      REDIS_MODE: 'sentinel',
      REDIS_URL: `redis://${AS_LIMITER_USER.REDIS_USERNAME}:${AS_LIMITER_USER.REDIS_PASSWORD}@sentinel.test:${port}`,
      REDIS_SENTINEL_MASTER: PRIMARY,
    },
    server,
  };
}

async function cluster(): Promise<Setup> {
  const server = await startRedisProcess({
    keepsData: true,
    userRules: limiterRules('cluster'),
    configure: () => [
      'cluster-enabled yes',
      'cluster-announce-hostname redis-0.test',
      'cluster-preferred-endpoint-type hostname',
    ],
  });
  await server.command('CLUSTER', 'ADDSLOTSRANGE', 0, 16_383);
  return {
    names: ['redis.test', 'redis-0.test'],
    settings: { REDIS_MODE: 'cluster', REDIS_URL: `redis://redis.test:${server.port}` },
    server,
  };
}

/** @param name the certificate is for `localhost` and 127.0.0.1 */
async function byTls(name: string): Promise<Setup> {
  const server = await startRedisTls(authority);
  const { certFile, keyFile } = await authority.issueClientCertificate('sluice');
  return {
    names: [name],
    settings: {
      REDIS_URL: `rediss://${name}:${server.port}`,
      REDIS_TLS_CA_FILE: authority.caFile,
      REDIS_TLS_CERT_FILE: certFile,
      REDIS_TLS_KEY_FILE: keyFile,
    },
    server,
  };
}

const all = (names: readonly string[], answer: string): Record<string, string> =>
  Object.fromEntries(names.map((name) => [name, answer]));

async function check({ url }: ReplicaProcess): Promise<number> {
  return (await send(url, 'POST', `/rate/${uniqueKey()}`)).status;
}

const messageOf = ({ err }: LogLine): string =>
  String((err as Partial<Error> | undefined)?.message);

describeWithRedisProgram('while DNS is down', () => {
  beforeAll(async () => {
    authority = await createAuthority();
  });
  afterEach(killReplicas);
  afterAll(() => authority.remove());

  const CASES: [what: string, setUp: () => Promise<Setup>, answer: string][] = [
    ['one Redis, and a look-up hangs', standalone, 'hangs'],
    ['Sentinel', sentinel, 'EAI_AGAIN'],
    ['a cluster', cluster, 'EAI_AGAIN'],
    ['one Redis, and a look-up fails', standalone, 'EAI_AGAIN'],
    ['one Redis, and its name is gone', standalone, 'ENOTFOUND'],
    ['TLS', () => byTls('localhost'), 'EAI_AGAIN'],
  ];
  test.each(CASES.slice(0, extent(3, CASES.length)))(
    'a replica reconnects to Redis at its last address (%s)',
    async (_what, setUp, answer) => {
      const { names, settings, server } = await setUp();
      const dns = new ReplicaDns(folder);
      dns.says(all(names, ADDRESS));
      const replica = await startReplica({ ...AS_LIMITER_USER, ...settings, ...dns.settings });
      await until(async () => (await check(replica)) === 200);

      dns.says(all(names, answer));
      await server.kill();
      await until(async () => (await check(replica)) === 503);
      await server.restart({ withData: true });
      await until(async () => (await check(replica)) === 200);
      const line = await replica.logged((each) => messageOf(each).startsWith('DNS look-up of'));
      expect(line.msg).toBe('redis connection failed');
      expect(messageOf(line)).toMatch(/ failed: .*; trying the last address 127\.0\.0\.1$/);
    },
  );

  test('the certificate of a server must be for its name, not for its address', async () => {
    const { names, settings } = await byTls('redis.test');
    const dns = new ReplicaDns(folder);
    dns.says(all(names, ADDRESS));
    const replica = await startReplica({ ...AS_LIMITER_USER, ...settings, ...dns.settings });
    expect(await check(replica)).toBe(503);
    await replica.logged((line) =>
      messageOf(line).includes('Host: redis.test. is not in the cert'),
    );
  });

  test('the log names the failure of DNS, not an option of ioredis', async () => {
    const { names, settings } = await standalone();
    const dns = new ReplicaDns(folder);
    dns.says(all(names, 'EAI_AGAIN'));
    const replica = await startReplica({ ...AS_LIMITER_USER, ...settings, ...dns.settings });
    await until(async () => (await check(replica)) === 503);

    const { reason } = await replica.logged(({ msg }) => msg === 'store call failed');
    expect(reason).toBe('not connected to Redis: DNS look-up of redis.test failed: EAI_AGAIN');
    expect(JSON.stringify(replica.log)).not.toContain('enableOfflineQueue');

    dns.says(all(names, ADDRESS));
    await until(async () => (await check(replica)) === 200);
  });
});
