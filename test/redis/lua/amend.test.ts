import { ScriptHarness, type TestReplica } from '../../support/script-harness.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();

let key: ScriptHarness;
let replica: TestReplica;
beforeEach(async () => {
  key = await ScriptHarness.create(redis.client);
  replica = key.replica('r1', { limits: { maxRequests: 5 } });
  await replica.check(['a', 'b']);
  await replica.checkHits('c', 2);
});

const storedHits = (): Promise<Record<string, string>> => redis.client.hgetall(key.names.hits);
const approved = async (): Promise<unknown> => (await key.stored()).state?.approved;

test('an approval gets more hits, fewer, or one', async () => {
  expect(await replica.amend('a', 2)).toBe(true);
  expect([await approved(), await storedHits()]).toEqual([5, { a: '2', c: '2' }]);
  expect(await replica.amend('c', 1)).toBe(true);
  expect([await approved(), await storedHits()]).toEqual([4, { a: '2' }]);
  expect(await replica.amend('a', 1)).toBe(true);
  expect([await approved(), await storedHits()]).toEqual([3, {}]);
});

test('the same correction twice counts once', async () => {
  await replica.amend('a', 2);
  expect(await replica.amend('a', 2)).toBe(true);
  expect(await approved()).toBe(5);
});

test('an approval without hits stays known, and is released', async () => {
  for (const id of ['a', 'b', 'c']) await replica.amend(id, 0);
  expect(await key.stored()).toMatchObject({
    state: { approved: 0 },
    requests: ['a', 'b', 'c'],
    expiry: { requests: 11_000, hits: 11_000 },
  });
  expect(await replica.check(['d'])).toEqual(['approved']);
  expect(await replica.release('a')).toBe(true);
  expect(await replica.amend('a', 1)).toBe(false);
  expect(await approved()).toBe(1);
});

test('an approval without hits ends with its window', async () => {
  const other = key.replica('r1', { limits: { windowMillis: 4000, maxRequests: 5 } });
  await key.setTime(4000);
  await other.check(['d']);
  await other.amend('d', 0);
  await key.setTime(9000);
  expect(await other.check(['e'])).toEqual(['approved']);
  expect((await key.stored()).requests).toEqual(['e']);
  expect(await other.amend('d', 1)).toBe(false);
});

test('more hits may exceed the maximum, and then nobody is approved until there is room', async () => {
  expect(await replica.amend('c', 9)).toBe(true);
  expect(await approved()).toBe(11);
  expect(await replica.check(['d'])).toEqual(['denied']);
  await replica.amend('c', 4);
  expect(await replica.check(['e'])).toEqual(['denied']);
  await replica.release('a');
  expect(await replica.check(['f'])).toEqual(['denied']);
  await replica.amend('c', 3);
  expect(await replica.check(['g'])).toEqual(['approved']);
});

test('fewer hits make room for the waiters, in their order', async () => {
  await replica.amend('c', 3);
  await replica.checkHits('w', 2, { canWait: true });
  await replica.checkOrWait(['x']);
  await replica.amend('c', 2);
  expect((await key.stored()).queue).toHaveLength(2);
  await replica.amend('c', 0);
  expect(await key.stored()).toMatchObject({
    state: { approved: 5 },
    requests: ['a', 'b', 'c', 'w', 'x'],
    queue: [],
  });
});

test.each([
  ['an unknown id', 'z', 0],
  ['an id of an earlier window', 'a', 1000],
])('%s is not found', async (_which, id, millis) => {
  await key.setTime(millis);
  expect(await replica.amend(id, 2)).toBe(false);
  expect(await replica.check(['d', 'e', 'f', 'g'].slice(0, millis === 0 ? 2 : 4))).toContain(
    'approved',
  );
});

test('an unknown key is not found, and not created', async () => {
  const other = await ScriptHarness.create(redis.client);
  expect(await other.replica('r1').amend('a', 2)).toBe(false);
  expect((await other.stored()).state).toBeUndefined();
});

test('a released approval is not found', async () => {
  await replica.release('a');
  expect(await replica.amend('a', 2)).toBe(false);
  expect(await approved()).toBe(3);
});
