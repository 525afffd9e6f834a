import { readdirSync, readFileSync } from 'node:fs';

import { Redis } from 'ioredis';

import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import { PATIENT_STORE } from '../../support/both-limiters.js';
import { describeWithRedisProgram } from '../../support/describe-with-redis-program.js';
import { approve, send } from '../../support/http-client.js';
import { startRedisProcess } from '../../support/redis-process.js';
import { adaptedRules, createUser, rulesIn } from '../../support/redis-user.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useApps } from '../../support/use-apps.js';
import { useRedis } from '../../support/use-redis.js';

type CommandLine = readonly [name: string, ...args: string[]];

const { state, leader, wakeChannel } = new KeyNaming('sluice:').namesOf('job');

/**
 * Commands that concern a whole server, or reveal other users of it: one of each sort, since another test compares all
 * commands that the user has.
 */
const OF_ADMINISTRATORS: readonly CommandLine[] = [
  ['FLUSHALL'],
  ['FLUSHDB'],
  ['SWAPDB', '0', '1'],
  ['SELECT', '0'],
  ['CLIENT', 'KILL', 'TYPE', 'normal'],
  ['SCRIPT', 'KILL'],
  ['FUNCTION', 'FLUSH'],
  ['CONFIG', 'SET', 'maxmemory', '1'],
  ['MODULE', 'LOAD', '/module.so'],
  ['DEBUG', 'SLEEP', '0'],
  ['SHUTDOWN', 'NOSAVE'],
  ['ACL', 'SETUSER', 'another'],
  ['KEYS', '*'],
  ['PSUBSCRIBE', '*'],
  ['MIGRATE', '127.0.0.1', '1', state, '0', '1'],
  ['CLUSTER', 'RESET'],
];

/** A server rejects DEBUG and MODULE from every user unless its configuration allows them. */
const REFUSED = /^NOPERM|^ERR (DEBUG|MODULE) command not allowed/;

const OF_OTHERS: readonly CommandLine[] = [
  ['GET', 'another'],
  ['SET', 'another', 'value'],
  ['DEL', 'another'],
  ['GET', 'sluice:another'],
  ['GET', 'mutex:sluice:{job}:another'],
  ['GET', 'mutex:another'],
  ['GET', `a:${state}`],
  ['RENAME', state, 'another'],
  ['SORT', state, 'STORE', 'another'],
  ['EVAL', 'return 1', '1', 'another'],
];

describe.each([
  {
    topology: 'one Redis and with Sentinels',
    rules: rulesIn('user'),
    foreign: [
      ['SUBSCRIBE', 'another'],
      ['SUBSCRIBE', 'sluice:another'],
      ['PUBLISH', 'another', ''],
      ['PUBLISH', `${wakeChannel}:3`, ''],
      ['SPUBLISH', wakeChannel, ''],
    ] as const,
  },
  {
    topology: 'a cluster',
    rules: [...rulesIn('user'), ...rulesIn('cluster')],
    foreign: [
      ['SSUBSCRIBE', 'another'],
      ['SPUBLISH', 'another', ''],
      ['PUBLISH', wakeChannel, ''],
      ['SUBSCRIBE', wakeChannel],
    ] as const,
  },
])('the user for $topology', ({ rules, foreign }) => {
  let client: Redis;
  afterAll(() => {
    client.disconnect();
  });
  const redis = useRedis();
  beforeAll(async () => {
    const { REDIS_USERNAME, REDIS_PASSWORD } = await createUser(redis.client, rules);
    client = redis.client.duplicate({ username: REDIS_USERNAME, password: REDIS_PASSWORD });
  });
  afterEach(() => redis.client.call('ACL', 'LOG', 'RESET'));

  const call = ([name, ...args]: CommandLine): Promise<unknown> => client.call(name, ...args);
  /** Sends a command from a script, without declaring its names as the script's keys. */
  const callInScript = (command: CommandLine): Promise<unknown> =>
    client.eval('return redis.call(unpack(ARGV))', 0, ...command);

  test.each([...OF_ADMINISTRATORS, ...OF_OTHERS, ...foreign])(
    'may not %s %s',
    async (...command: [string, ...string[]]) => {
      await expect(call(command)).rejects.toThrow(REFUSED);
    },
  );

  test.each([
    ...OF_OTHERS.filter(([name]) => name !== 'EVAL'),
    ...foreign.filter(([name]) => name.endsWith('PUBLISH')),
    ...OF_ADMINISTRATORS.filter(([name]) =>
      ['FLUSHALL', 'KEYS', 'SELECT', 'SWAPDB'].includes(name),
    ),
  ])('may not %s %s in a script', async (...command: [string, ...string[]]) => {
    const refusal = /ACL failure in script|The user executing the script/;
    await expect(callInScript(command)).rejects.toThrow(refusal);
  });

  test('may use the names of a limiter key', async () => {
    expect(await client.hset(state, 'field', 'value')).toBe(1);
    expect(await client.set(`mutex:${leader}`, 'replica', 'PX', 1000)).toBe('OK');
    expect(await client.del(state)).toBe(1);
  });
});

/** The commands of the limiter itself, its mutexes and ioredis, and the command that scripts publish with. */
const OF_CLIENTS = [
  ...['client|setname', 'info', 'ping', 'eval', 'evalsha', 'scan', 'setrange'],
  ...['fcall', 'function|load'],
  ...['publish', 'subscribe', 'unsubscribe', 'get', 'set', 'pexpire', 'del'],
];

test('the user may send exactly the commands of clients and scripts', () => {
  const texts = readdirSync('lua', { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.lua'))
    .map((name) => readFileSync(`lua/${name}`, 'utf8').replace(/--.*/g, ''));
  const calls =
    /(?:redis\.p?call|chunks\.(?:call|list)|call_order)\((?:keys, state,)?\s*'([A-Z]+)'/g;
  const ofScripts = [...texts.join('\n').matchAll(calls)].map(([, name = '']) =>
    name.toLowerCase(),
  );
  const rules = [...rulesIn('user'), ...rulesIn('functions')];
  const allowed = rules.flatMap((rule) => (rule.startsWith('+') ? [rule.slice(1)] : []));
  expect(ofScripts.length).toBeGreaterThan(20);
  expect([...allowed].sort()).toEqual([...new Set([...OF_CLIENTS, ...ofScripts])].sort());
});

describe('a service', () => {
  const redis = useRedis();
  const start = useApps();

  test('sends no command that its server does not know, not even its library name', async () => {
    const checkOnce = async (): Promise<void> => {
      const app = await start({ ...PATIENT_STORE, REDIS_URL: redis.url });
      await approve(app.url, uniqueKey());
      await app.stop(0);
    };
    // The first check may find that Redis lacks the function, which counts as an error.
    await checkOnce();
    await redis.client.config('RESETSTAT');
    await checkOnce();
    const stats = await redis.client.info('all');
    expect(stats).toContain('cmdstat_client|setname');
    expect(stats).not.toMatch(/cmdstat_client\|setinfo|errorstat_ERR/);
  });

  test('does everything but list keys if its user lacks +scan', async () => {
    const user = await createUser(redis.client, [...adaptedRules({ prefix: 'mine:' }), '-scan']);
    const app = await start({
      ...PATIENT_STORE,
      ...user,
      REDIS_URL: redis.url,
      KEY_PREFIX: 'mine:',
    });
    const list = await send(app.url, 'GET', '/debug');
    expect([list.status, list.json()]).toEqual([
      501,
      { error: 'the Redis user may not list keys (+scan)' },
    ]);
    const key = uniqueKey();
    await approve(app.url, key);
    expect((await send(app.url, 'GET', `/debug/${key}`)).json()).toMatchObject({ Found: true });
    expect((await send(app.url, 'GET', '/readyz')).status).toBe(200);
    expect(app.log.map(({ msg }) => msg)).not.toContain(
      'store is down; not asked until it is up again',
    );
    await app.stop(0);
    await redis.client.call('ACL', 'LOG', 'RESET');
  });
});

describeWithRedisProgram('the user for a sentinel', () => {
  test('may ask for the primary and learn of failovers, and nothing else', async () => {
    const sentinel = await startRedisProcess({
      sentinel: true,
      userRules: rulesIn('sentinel-user'),
      configure: () => ['sentinel monitor primary 127.0.0.1 1 1'],
    });
    const client = new Redis(sentinel.url, { enableReadyCheck: false });
    expect(await client.call('SENTINEL', 'get-master-addr-by-name', 'primary')).toEqual([
      '127.0.0.1',
      '1',
    ]);
    expect(await client.call('SENTINEL', 'sentinels', 'primary')).toEqual([]);
    for (const [name, ...args] of [
      ['SENTINEL', 'RESET', 'primary'],
      ['SENTINEL', 'REMOVE', 'primary'],
      ['SENTINEL', 'FAILOVER', 'primary'],
      ['SENTINEL', 'SET', 'primary', 'quorum', '2'],
      ['SENTINEL', 'MASTERS'],
      ['SENTINEL', 'CONFIG', 'GET', '*'],
      ['SHUTDOWN'],
      ['CLIENT', 'KILL', 'TYPE', 'normal'],
      ['ACL', 'LIST'],
      ['PUBLISH', '+switch-master', ''],
      ['SUBSCRIBE', 'another'],
    ] as const) {
      await expect(client.call(name, ...args)).rejects.toThrow(/^NOPERM/);
    }
    expect(await client.subscribe('+switch-master')).toBe(1);
    client.disconnect();
    await sentinel.command('ACL', 'LOG', 'RESET');
  });
});
