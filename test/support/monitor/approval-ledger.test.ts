import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import { uniqueKey } from '../unique-key.js';
import { useRedis } from '../use-redis.js';
import { ApprovalLedger } from './approval-ledger.js';

const naming = new KeyNaming('sluice:');
const redis = useRedis();

/** A key with a maximum of one, an account of it, and a faulty script that changes it. */
async function openLedger() {
  const key = uniqueKey();
  const { state, requests, waiting } = naming.namesOf(key);
  await redis.client.hset(state, 'limits', '500:1*:0', 'start', '0');
  const ledger = await ApprovalLedger.open(redis.client, key, 1);
  const script = (text: string): Promise<unknown> =>
    redis.client.eval(text, 3, state, requests, waiting);
  return { ledger, script };
}

test('an account has the joined, served and approved requests in order', async () => {
  const { ledger, script } = await openLedger();
  await script("redis.call('SADD', KEYS[2], 'first')");
  await script("redis.call('HSET', KEYS[3], 'second', 1, 'third', 2)");
  await script("redis.call('SREM', KEYS[2], 'first')");
  await script("redis.call('SADD', KEYS[2], 'second') redis.call('HDEL', KEYS[3], 'second')");
  await ledger.close();

  expect(ledger.violations).toEqual([]);
  expect(ledger.joined).toEqual(['second', 'third']);
  expect(ledger.served).toEqual(['second']);
  expect(ledger.approved).toEqual(['first', 'second']);
  expect(ledger.inWindow).toBe(1);
});

test.each([
  ['more approvals than the maximum', 'a', 'b', /2 approved in one window/],
  ['a second approval of one request', 'a', 'a', /approved a twice/],
])('an account finds %s', async (_what, first, second, violation) => {
  const { ledger, script } = await openLedger();
  // The account begins to judge at the first command that it sees, and has read the key by the second.
  await script("redis.call('SADD', KEYS[2], 'before') redis.call('SREM', KEYS[2], 'before')");
  await ledger.upToNow();
  await script(`redis.call('SADD', KEYS[2], '${first}')`);
  await script(`redis.call('SADD', KEYS[2], '${second}')`);
  await ledger.close();

  expect(ledger.violations).toEqual([expect.stringMatching(violation)]);
});
