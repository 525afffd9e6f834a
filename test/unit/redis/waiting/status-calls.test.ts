import { setImmediate as nextTick } from 'node:timers/promises';

import { eventLoop } from '../../../../src/common/ticks.js';
import type { RequestStatus } from '../../../../src/limiter/limiter.js';
import { StatusCalls } from '../../../../src/redis/waiting/status-calls.js';
import { KeyNaming, type KeyNames } from '../../../../src/redis/shared/key-names.js';

const naming = new KeyNaming('');
const [k, l] = [naming.namesOf('k'), naming.namesOf('l')];
const MOST_IDS = 100;
const MOST_CALLS = 16;

/** Redis, whose calls are answered one by one. The position in each status is the number in the id. */
class Store {
  readonly calls: { readonly key: string; readonly ids: readonly string[] }[] = [];
  readonly answers: ((error?: Error) => void)[] = [];

  statuses({ key }: KeyNames, ids: readonly string[]): Promise<RequestStatus[]> {
    this.calls.push({ key, ids });
    return new Promise((resolve, reject) => {
      this.answers.push((error) => {
        if (error) reject(error);
        else resolve(ids.map((id) => ({ status: 'waiting', position: Number(id), waitMillis: 0 })));
      });
    });
  }
}

const ids = (count: number): string[] => Array.from({ length: count }, (_, i) => String(i));

test('requests of one key and one tick share a call, and each gets its own status', async () => {
  const store = new Store();
  const calls = new StatusCalls(store, eventLoop);
  const asked = [calls.statusOf(k, '7'), calls.statusOf(l, '1'), calls.statusOf(k, '3')];
  await nextTick();
  void calls.statusOf(k, '9');
  await nextTick();
  expect(store.calls).toEqual([
    { key: 'k', ids: ['7', '3'] },
    { key: 'l', ids: ['1'] },
    { key: 'k', ids: ['9'] },
  ]);
  for (const answer of store.answers) answer();
  expect(await Promise.all(asked)).toMatchObject([
    { position: 7 },
    { position: 1 },
    { position: 3 },
  ]);
});

test('a call has a hundred requests at most, and few calls are under way at a time', async () => {
  const store = new Store();
  const calls = new StatusCalls(store, eventLoop);
  const asked = ids((MOST_CALLS + 2) * MOST_IDS).map((id) => calls.statusOf(k, id));
  await nextTick();
  expect(store.calls.map(({ ids: ofCall }) => ofCall.length)).toEqual(
    new Array(MOST_CALLS).fill(MOST_IDS),
  );
  for (let i = 0; i < MOST_CALLS + 2; i += 1) {
    store.answers[i]!();
    await nextTick();
  }
  expect(await Promise.all(asked)).toMatchObject(
    ids(asked.length).map((id) => ({ position: Number(id) })),
  );
});

test('a call that fails fails its requests, and no others', async () => {
  const store = new Store();
  const calls = new StatusCalls(store, eventLoop);
  const asked = [calls.statusOf(k, '1'), calls.statusOf(k, '2'), calls.statusOf(l, '3')];
  await nextTick();
  store.answers[0]!(new Error('refused'));
  store.answers[1]!();
  const outcomes = await Promise.allSettled(asked);
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled']);
});
