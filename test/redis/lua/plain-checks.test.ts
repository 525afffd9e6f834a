import fc from 'fast-check';

import type { CheckBatchReply } from '../../../src/redis/scripts/check-codec.js';
import { OPERATION } from '../../support/redis-user.js';
import { checkBatchOf, type StoredKey, useScriptHarness } from '../../support/script-harness.js';
import { startOfControlledTime } from '../../support/redis-time.js';
import { extent } from '../../support/extent.js';
import { useRedis } from '../../support/use-redis.js';

/** Decides nothing, so that every check is decided like one that is not plain. */
const NOTHING_IS_PLAIN = {
  'lib/plain-checks': 'return { decide = function() end }',
};

const redis = useRedis();
const key = useScriptHarness(redis);
/** Of both histories: turns of a lease begin where that divides the time. */
const START = startOfControlledTime();

/** What happens to a key at a time, and then how many checks come for it. */
const step = fc.record({
  /** A clock can go back. */
  elapsed: fc.oneof(
    fc.constantFrom(0, 1, 999, 1000, 1001, 3999, 4000, -1, -1001),
    fc.integer({ min: 0, max: 6000 }),
  ),
  checks: fc.integer({ min: 1, max: 5 }),
  assumption: fc.constantFrom('inWindow', 'newWindow', 'unknown'),
  releases: fc.boolean(),
  loses: fc.oneof(
    { weight: 8, arbitrary: fc.constant('nothing' as const) },
    { weight: 1, arbitrary: fc.constantFrom('requests' as const, 'state' as const) },
  ),
});

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

interface Settings {
  readonly maxRequests: number;
  readonly maxIdsPerKey: number;
  readonly leaseMillis: number;
}

const settings = fc.record({
  maxRequests: fc.constantFrom(0, 1, 3),
  maxIdsPerKey: fc.constantFrom(2, 1_000_000),
  /** With the longer one, three windows are shorter than a lease. */
  leaseMillis: fc.constantFrom(500, 5000),
});

/** What each step replied, and left behind. */
async function run(
  steps: readonly Step[],
  { maxRequests, ...rest }: Settings,
  replacements: Readonly<Record<string, string>>,
): Promise<{ readonly reply: unknown; readonly stored: StoredKey }[]> {
  await key.begin(START);
  const limits = { windowMillis: 1000, maxRequests };
  const { scripts } = key.replica('r1', { limits, ...rest, replacements });
  const seen: { reply: unknown; stored: StoredKey }[] = [];
  let now = 0;
  for (const [i, { elapsed, checks, assumption, releases, loses }] of steps.entries()) {
    now = Math.max(0, now + elapsed);
    await key.setTime(now);
    if (loses !== 'nothing') await redis.client.del(key.names[loses]);
    if (releases) await scripts.release(key.names, `${i - 1}-0`);
    const batch = Array.from({ length: checks }, (_, n) => ({
      requestId: `${i}-${n}`,
      canWait: false,
    }));
    const [reply] = await scripts.check([checkBatchOf(key.names, batch, { assumption })]);
    const { millisToRoom, quota, verdicts } = reply as CheckBatchReply;
    seen.push({ reply: [millisToRoom, quota, ...verdicts], stored: await key.stored() });
  }
  return seen;
}

test('plain checks are decided, and leave a key, as if none were plain', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 10 }),
      settings,
      async (steps, used) => {
        const plainly = await run(steps, used, {});
        expect(plainly).toEqual(await run(steps, used, NOTHING_IS_PLAIN));
      },
    ),
    { numRuns: extent(50, 200) },
  );
  // It bounds the histories, and not the time: a busy machine takes four times as long.
}, 300_000);

test('a plain check of a key in mid-window is one of few commands', async () => {
  const replica = key.replica('r1', { leaseMillis: 500 });
  await replica.check(['a']);
  await redis.client.config('RESETSTAT');
  await replica.check(['b']);
  const stats = await redis.client.info('commandstats');
  const commands = [...stats.matchAll(/^cmdstat_(\w+):calls=(\d+)/gm)].map(
    ([, name, calls]) => `${name} ${calls}`,
  );
  expect(commands).toEqual(
    expect.arrayContaining([
      'hmget 1',
      'sadd 1',
      'scard 1',
      'hset 1',
      `${OPERATION.toLowerCase()} 1`,
    ]),
  );
  expect(commands.filter((text) => /^(pexpireat|exists|unlink|rename|hlen) /.test(text))).toEqual(
    [],
  );
});
