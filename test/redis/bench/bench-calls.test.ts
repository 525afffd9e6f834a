import { loadScript, type Script } from '../../../src/redis/scripts/script-loader.js';
import type { KeyNaming } from '../../../src/redis/shared/key-names.js';
import type { Scripts } from '../../../src/redis/scripts/scripts.js';
import type { KeyLimits } from '../../../src/limiter/limiter.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';
import { keyLimits } from '../../support/limits.js';

interface ScriptCalls {
  readonly naming: KeyNaming;
  readonly scriptsOn: (client: unknown, limits: KeyLimits) => Scripts;
  readonly checkCommand: (
    script: Pick<Script, 'library'>,
    batches: readonly object[],
    limits: KeyLimits,
  ) => string[];
}

const LIMITS = keyLimits({ windowMillis: 3_600_000, maxRequests: 2, maxRequestsInQueue: 0 });

const redis = useRedis();

/** The benchmark calls what is built, in JavaScript, so that no compiler tells when the service has changed. */
async function scriptCalls(): Promise<ScriptCalls> {
  const path = '../../../bench/lib/script-calls.mjs';
  return (await import(path)) as ScriptCalls;
}

test('the calls of the benchmark are those that the scripts take', async () => {
  const { naming, scriptsOn, checkCommand } = await scriptCalls();
  const batches = Array.from({ length: 3 }, () => ({
    names: naming.namesOf(uniqueKey()),
    overrides: { maxRequests: undefined, maxRequestsInQueue: undefined },
    waiting: undefined,
    checks: ['a', 'b', 'c'].map((requestId) => ({ requestId, canWait: false })),
  }));
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
