import { type KeyNames, KeyNaming } from '../../../src/redis/shared/key-names.js';
import { type CheckBatch, encodeChecks, VERDICT } from '../../../src/redis/scripts/check-codec.js';
import { loadScript } from '../../../src/redis/scripts/script-loader.js';
import type { Scripts } from '../../../src/redis/scripts/scripts.js';
import { StoreFullError } from '../../../src/limiter/errors.js';
import { keyLimits } from '../../support/limits.js';
import { SCRIPT_CALLER } from '../../support/script-caller.js';
import { checkBatchOf, type Overrides } from '../../support/script-harness.js';
import { scriptsOfManyKeys } from '../../support/scripts-of-many-keys.js';
import { sentAgain } from '../../support/unguarded.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';
import { whileFull } from '../../support/while-full.js';

const LIMITS = { windowMillis: 3_600_000, maxRequests: 2, maxRequestsInQueue: 3 };
const redis = useRedis();
const { approved, denied, storeFull } = VERDICT;

let scripts: Scripts;
let again: Scripts;
let naming: KeyNaming;
beforeEach(() => {
  naming = new KeyNaming(`${uniqueKey()}:`);
  scripts = scriptsOfManyKeys(redis.client, () => LIMITS);
  again = scriptsOfManyKeys(redis.client, () => LIMITS, { guard: sentAgain });
});

function batch(key: string, ids: readonly string[], overrides: Overrides = {}): CheckBatch {
  const checks = ids.map((requestId) => ({ requestId, canWait: false }));
  return checkBatchOf(naming.namesOf(key), checks, { overrides });
}

/** The verdicts or the error of each batch of one call. */
async function decide(...batches: CheckBatch[]): Promise<(readonly number[] | Error)[]> {
  const replies = await scripts.check(batches);
  return replies.map((reply) => (reply instanceof Error ? reply : reply.verdicts));
}

test('names in several slots come as arguments, and are followed by the ids of the checks', async () => {
  const { text } = loadScript('check');
  const batches = [batch('a', ['1', '2']), batch('b', ['3'])];
  const caller = { ...SCRIPT_CALLER, limitsOf: () => keyLimits(LIMITS) };
  const { keys, args } = encodeChecks(caller, batches, {
    isSentAgain: false,
    mayBeFull: false,
    hasSeveralSlots: true,
    time: 0,
  });
  expect(keys).toEqual([]);
  await redis.client.eval(text, 0, ...args);
  expect(await approvedIn(naming.namesOf('a'))).toEqual(['1', '2']);
  expect(await approvedIn(naming.namesOf('b'))).toEqual(['3']);
});

const approvedIn = async ({ requests }: KeyNames): Promise<string[]> =>
  (await redis.client.smembers(requests)).sort();

test('each batch of a call is decided by the state of its own key', async () => {
  await decide(batch('full', ['x', 'y']), batch('half', ['x']));

  const verdicts = await decide(
    batch('full', ['a']),
    batch('half', ['b', 'c']),
    batch('new', ['d', 'e', 'f']),
  );

  expect(verdicts).toEqual([[denied], [approved, denied], [approved, approved, denied]]);
  expect(await approvedIn(naming.namesOf('full'))).toEqual(['x', 'y']);
  expect(await approvedIn(naming.namesOf('half'))).toEqual(['b', 'x']);
  expect(await approvedIn(naming.namesOf('new'))).toEqual(['d', 'e']);
});

test('batches of one key are decided one after the other', async () => {
  const verdicts = await decide(
    batch('k', ['a', 'b', 'c']),
    batch('k', ['d', 'e'], { maxRequests: 3 }),
    batch('l', ['f']),
    batch('k', ['g']),
  );

  expect(verdicts).toEqual([
    [approved, approved, denied],
    [approved, denied],
    [approved],
    [denied],
  ]);
});

test.each(['state', 'waiting'] as const)(
  'a batch whose %s has a wrong type fails alone',
  async (name) => {
    const broken = naming.namesOf('broken');
    await redis.client.set(broken[name], 'not ours', 'EX', 60);

    const [before, failure, after] = await decide(
      batch('before', ['a']),
      batch('broken', ['b', 'c', 'd']),
      batch('after', ['e', 'f', 'g']),
    );

    expect([before, after]).toEqual([[approved], [approved, approved, denied]]);
    expect(failure).toMatchObject({ message: expect.stringMatching(/^WRONGTYPE /) as unknown });
    expect(await approvedIn(naming.namesOf('after'))).toEqual(['e', 'f']);
  },
);

describe('a full Redis', () => {
  test('fails checks of new keys, and decides them when it has room again', async () => {
    const replies = await whileFull(redis.client, () =>
      scripts.check([batch('k', ['a']), batch('l', ['b'])]),
    );
    const [refusal] = replies;
    expect(replies).toEqual([expect.any(StoreFullError), expect.any(StoreFullError)]);
    expect(refusal).toMatchObject({
      cause: { message: expect.stringMatching(/^OOM /) as unknown },
    });
    expect(await approvedIn(naming.namesOf('k'))).toEqual([]);
    expect(await decide(batch('k', ['a']))).toEqual([[approved]]);
  });

  test('decides checks of a key within its window', async () => {
    await decide(batch('k', ['a']));
    const [reply] = await whileFull(redis.client, () => scripts.check([batch('k', ['b', 'c'])]));
    expect(reply).toMatchObject({ verdicts: [approved, denied] });
  });

  test('decides checks of existing keys, and makes no new key with them', async () => {
    await decide(batch('k', ['a']), batch('l', ['b']));
    const known = [naming.namesOf('k'), naming.namesOf('l')];
    // Their windows have ended, so a decision begins with a write that takes no memory.
    for (const { state } of known) await redis.client.hincrby(state, 'start', -3_600_000);
    const [k, first, l, second, again] = await whileFull(redis.client, () =>
      scripts.check([
        batch('k', ['c', 'd', 'e']),
        batch('new', ['f']),
        batch('l', ['g']),
        batch('newer', ['h']),
        batch('k', ['i'], { maxRequests: 4 }),
      ]),
    );
    expect([k, l, again]).toMatchObject([
      { verdicts: [approved, approved, denied] },
      { verdicts: [approved] },
      { verdicts: [approved] },
    ]);
    expect([first, second]).toEqual([expect.any(StoreFullError), expect.any(StoreFullError)]);
    expect(await redis.client.exists(naming.namesOf('new').state)).toBe(0);
  });

  describe('that is above its maxmemory by more than a tenth', () => {
    const FAR_ABOVE = 1.2;
    const whileFarAbove = <T>(work: () => Promise<T>): Promise<T> =>
      whileFull(redis.client, work, FAR_ABOVE);

    test('fails checks that it would approve or let wait, and denies the others', async () => {
      await decide(batch('k', ['a']), batch('full', ['b', 'c']));
      const waiting = { ...batch('full', ['w']), checks: [{ requestId: 'w', canWait: true }] };
      const verdicts = await whileFarAbove(() =>
        decide(batch('k', ['d', 'e', 'f']), batch('full', ['g']), waiting, batch('new', ['h'])),
      );
      expect(verdicts).toEqual([
        [storeFull, storeFull, storeFull],
        [denied],
        [storeFull],
        expect.any(StoreFullError),
      ]);
      expect(await approvedIn(naming.namesOf('k'))).toEqual(['a']);
      expect(await redis.client.exists(naming.namesOf('full').queue)).toBe(0);
    });

    test('fails checks with several hits or a hold that fit, and denies those that do not', async () => {
      await decide(batch('k', ['a']));
      const terms = {
        ...batch('k', []),
        checks: [
          { requestId: 'b', canWait: false, hits: 2 },
          { requestId: 'c', canWait: false, holdMillis: 1000 },
        ],
      };
      expect(await whileFarAbove(() => decide(terms))).toEqual([[denied, storeFull]]);
    });

    test('approves again what it has approved before, and releases', async () => {
      await decide(batch('k', ['a', 'b']));
      await whileFarAbove(async () => {
        expect(await again.check([batch('k', ['a'])])).toMatchObject([{ verdicts: [approved] }]);
        expect(await again.release(naming.namesOf('k'), 'a')).toBe(true);
      });
      expect(await approvedIn(naming.namesOf('k'))).toEqual(['b']);
    });

    test.each(['function', 'script'])(
      'approves nothing after it has removed what has ended, by a %s',
      async (form) => {
        const onlyScripts = form === 'script';
        const held = (requestId: string): CheckBatch => ({
          ...batch('k', []),
          checks: [{ requestId, canWait: false, holdMillis: 60_000 }],
        });
        await decide(held('a'));
        const { state, holds } = naming.namesOf('k');
        // The hold and the window have ended.
        const [summary = ''] = await redis.client.hmget(state, 'holds');
        await redis.client.hset(state, 'holds', summary!.replace(/\d{13}/g, '1000'));
        await redis.client.hset(holds, 'a', '1000:60000');
        await redis.client.hincrby(state, 'start', -3_600_000);
        const [reply] = await whileFarAbove(() =>
          scriptsOfManyKeys(redis.client, () => LIMITS, { onlyScripts }).check([held('b')]),
        );
        expect(reply).toMatchObject({ verdicts: [storeFull] });
        expect(await redis.client.exists(holds)).toBe(0);
      },
    );
  });
});
