import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

interface Asking {
  readonly path: string;
  readonly body?: string;
  readonly checks?: number;
  readonly approved: { readonly text: string; readonly length?: number };
}

interface Launch {
  readonly arguments: readonly (string | number)[];
  readonly environment: Readonly<Record<string, string | number>>;
  readonly files?: Readonly<Record<string, string>>;
  readonly startsOnOneCore?: boolean;
}

interface Program {
  readonly name: string;
  readonly path: string;
  readonly asking: Asking;
  readonly usesRedis: boolean;
  readonly launch: (parts: object) => Launch;
}

interface PeersModule {
  readonly nativePrograms: (paths: Readonly<Record<string, string>>) => readonly Program[];
  readonly describePeer: (peer: string, path: string) => string;
}

interface RedisRateModule {
  readonly scriptIn: (path: string) => string;
}

interface AskingModule {
  readonly SINGLE_CHECK: Asking;
  readonly checksAtOnce: (checks: number) => Asking;
  readonly callOf: (asking: Asking, nextKey: () => string) => { path: string; body: string };
  readonly isRight: (answer: string, asking: Asking, mayRefuse: boolean) => boolean;
}

const [peersPath, askingPath, redisRatePath] = [
  '../../../bench/lib/native-peers.mjs',
  '../../../bench/lib/asking.mjs',
  '../../../bench/peers/redis-rate.mjs',
];
const { nativePrograms, describePeer } = (await import(peersPath)) as PeersModule;
const { scriptIn } = (await import(redisRatePath)) as RedisRateModule;
const { SINGLE_CHECK, checksAtOnce, callOf, isRight } = (await import(askingPath)) as AskingModule;

const PROGRAMS = nativePrograms({ gocc: 'g', limitador: 'l', 'envoy-ratelimit': 'e' });
const REDIS = { port: 7001, url: 'redis://127.0.0.1:7001' };
const PARTS = { port: 8001, sparePorts: [8002, 8003], folder: '/f', redis: REDIS, limit: 1234 };
const APPROVAL = { request_id: '33ae0015-5d23-4b92-a7d9-c2632dd50c59' };

const settingsOf = (launch: Launch): string => JSON.stringify(launch);

test('only the peers with a program are started, Limitador in memory and on Redis', () => {
  expect(nativePrograms({})).toEqual([]);
  expect(nativePrograms({ 'redis-rate': 'r' })).toEqual([]);
  expect(PROGRAMS.map(({ name, path, usesRedis }) => [name, path, usesRedis])).toEqual([
    ['gocc', 'g', false],
    ['limitador', 'l', false],
    ['limitador-redis', 'l', true],
    ['envoy-ratelimit', 'e', true],
  ]);
});

test.each(PROGRAMS)('$name has the port, the limit and one core', ({ launch }) => {
  const settings = launch(PARTS);

  expect(settingsOf(settings)).toContain('8001');
  expect(settingsOf(settings)).toContain('1234');
  expect(settings.startsOnOneCore ?? settings.environment.GOMAXPROCS === '1').toBe(true);
});

test.each(PROGRAMS)(
  '$name gets the address of Redis only if it uses it',
  ({ usesRedis, launch }) => {
    expect(settingsOf(launch(PARTS)).includes('127.0.0.1:7001')).toBe(usesRedis);
  },
);

test.each(PROGRAMS)('$name is asked for the key once', ({ asking }) => {
  const { path, body } = callOf(asking, () => 'hot-7');

  expect(`${path} ${body}`.split('hot-7')).toHaveLength(2);
  if (body !== '') expect(JSON.parse(body)).toBeInstanceOf(Object);
});

test('bulk requests name a key for each check', () => {
  let last = 0;
  const nextKey = (): string => {
    last += 1;
    return `many-${last}`;
  };

  const { path, body } = callOf(checksAtOnce(3), nextKey);

  expect(path).toBe('/rate');
  expect(JSON.parse(body)).toEqual([{ key: 'many-1' }, { key: 'many-2' }, { key: 'many-3' }]);
});

test('an answer is right if it equals the expected answer', () => {
  const [approved, denied] = [
    JSON.stringify(APPROVAL),
    '{"error":"rate limit exceeded","key":"k"}',
  ];

  expect(isRight(approved, SINGLE_CHECK, false)).toBe(true);
  expect(isRight(`${approved} `, SINGLE_CHECK, false)).toBe(false);
  expect(isRight(denied, SINGLE_CHECK, false)).toBe(false);
  expect(isRight(denied, SINGLE_CHECK, true)).toBe(true);
});

test('an answer to a bulk request is right if all checks are approved', () => {
  const two = checksAtOnce(2);
  const approval = { status: 200, ...APPROVAL };
  const denial = { status: 429, error: 'rate limit exceeded', retryAfter: 1 };

  expect(isRight(JSON.stringify([approval, approval]), two, false)).toBe(true);
  expect(isRight(JSON.stringify([approval]), two, false)).toBe(false);
  expect(isRight(JSON.stringify([approval, denial]), two, false)).toBe(false);
});

test("redis_rate's script for one check is read from its file", () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-redis-rate-'));
  try {
    const file = join(folder, 'lua.go');
    const scripts = ['allowN', 'allowAtMost'].map(
      (name) => `var ${name} = redis.NewScript(\`\nreturn "${name}"\n\`)\n`,
    );
    writeFileSync(file, scripts.reverse().join(''));
    expect(scriptIn(file)).toBe('\nreturn "allowN"\n');

    writeFileSync(file, 'package redis_rate');
    expect(() => scriptIn(file)).toThrow(`${file} has no script allowN`);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('the version of a Go module is the one of its folder', () => {
  const folder = join(tmpdir(), 'redis_rate', 'v10@v10.0.1');

  expect(describePeer('redis-rate', join(folder, 'lua.go'))).toBe('redis-rate v10.0.1');
});
