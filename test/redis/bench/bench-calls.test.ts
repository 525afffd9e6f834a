import { loadScript, type Script } from '../../../src/redis/scripts/script-loader.js';
import type { KeyNaming } from '../../../src/redis/shared/key-names.js';
import type { Scripts } from '../../../src/redis/scripts/scripts.js';
import type { KeyLimits } from '../../../src/limiter/limiter.js';
import type { Algorithm } from '../../../src/limiter/kinds/kinds.js';
import type { Limit } from '../../../src/limiter/limits.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';
import { keyLimits } from '../../support/limits.js';
import { checkBatchOf } from '../../support/script-harness.js';

interface ScriptCalls {
  readonly naming: KeyNaming;
  readonly scriptsOn: (client: unknown, limits: KeyLimits) => Scripts;
  readonly checkCommand: (
    script: Pick<Script, 'library'>,
    batches: readonly object[],
    limits: KeyLimits,
  ) => string[];
  readonly keyLimits: (
    windowMillis: number,
    maximum: number,
    further?: readonly Limit[],
    algorithm?: Algorithm,
  ) => KeyLimits;
  readonly approvedAlone: (scripts: Scripts, key: string) => Promise<void>;
}

interface Bucket {
  readonly served: number;
  readonly level: number;
  readonly at: number;
}

interface BucketTimes {
  readonly bucketIn: (redis: object, key: string, waiters: number) => Promise<Bucket>;
}

const LIMITS = keyLimits({ windowMillis: 3_600_000, maxRequests: 2, maxRequestsInQueue: 0 });

const redis = useRedis();

/** The benchmark calls what is built, in JavaScript, so that no compiler tells when the service has changed. */
async function scriptCalls(): Promise<ScriptCalls> {
  const path = '../../../bench/lib/script-calls.mjs';
  return (await import(path)) as ScriptCalls;
}

async function bucketTimes(): Promise<BucketTimes> {
  const path = '../../../bench/lib/bucket-times.mjs';
  return (await import(path)) as BucketTimes;
}

test('the calls of the benchmark are those that the scripts take', async () => {
  const { naming, scriptsOn, checkCommand } = await scriptCalls();
  const checks = ['a', 'b', 'c'].map((requestId) => ({ requestId, canWait: false }));
  const batches = [1, 2, 3].map(() => checkBatchOf(naming.namesOf(uniqueKey()), checks));
  const verdicts = [1, 1, 0];
  const replies = await scriptsOn(redis.client, LIMITS).check(batches);
  expect(replies).toMatchObject(batches.map(() => ({ verdicts })));

  const others = batches.map((batch) => ({ ...batch, names: naming.namesOf(uniqueKey()) }));
  const script = loadScript('check');
  await redis.client.call('FUNCTION', 'LOAD', 'REPLACE', script.library.text);
  const [command = '', ...words] = checkCommand(script, others, LIMITS);
  expect(await redis.client.call(command, ...words)).toEqual(
    others.flatMap((): unknown[] => [expect.any(Number), 2, 2, ...verdicts]),
  );
});

test('a check of the benchmark that is denied fails its run', async () => {
  const { scriptsOn, approvedAlone } = await scriptCalls();
  const scripts = scriptsOn(redis.client, LIMITS);
  const key = uniqueKey();
  await approvedAlone(scripts, key);
  await approvedAlone(scripts, key);

  await expect(approvedAlone(scripts, key)).rejects.toThrow('not approved: 0');
});

test('the benchmark reads the level of a bucket, and how many of its waiters are served', async () => {
  const { naming, scriptsOn, keyLimits: limitsOf, approvedAlone } = await scriptCalls();
  const { bucketIn } = await bucketTimes();
  const key = uniqueKey();
  const limits = limitsOf(3_600_000, 2, [], { name: 'token_bucket', burst: 1 });
  const scripts = scriptsOn(redis.client, limits);
  await approvedAlone(scripts, key);
  await scripts.check([checkBatchOf(naming.namesOf(key), [{ requestId: 'waits', canWait: true }])]);
  const [seconds, micros] = (await redis.client.time()).map(Number) as [number, number];

  const bucket = await bucketIn(redis, key, 3);

  expect(bucket).toEqual({ served: 2, level: 1, at: expect.any(Number) as number });
  const millis = seconds * 1000 + micros / 1000;
  expect(bucket.at).toBeLessThan(millis);
  expect(bucket.at).toBeGreaterThan(millis - 60_000);
});
