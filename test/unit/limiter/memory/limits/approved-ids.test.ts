import { randomUUID } from 'node:crypto';

import { ApprovedIds } from '../../../../../src/limiter/memory/limits/approved-ids.js';
import { memoryIn, MemoryBudget } from '../../../../../src/limiter/memory/memory-budget.js';
import { Random } from '../../../../support/chaos/random.js';

const ID = 'ab34567f-89ab-4def-8123-456789abcdef';

test.each([1, 2, 3])('remembers the same ids as a map of texts, with seed %i', (seed) => {
  const random = new Random(seed);
  const room = new MemoryBudget(Infinity);
  for (let window = 0; window < 8; window += 1) {
    const ids = new ApprovedIds(room);
    const model = new Map<string, number>();
    const known: string[] = [];
    // Ids have few different beginnings, so that many look for the same place. Hits come at any time, or never.
    const newId = (): string => random.pick(['', '0000', 'ffff', '8000']) || randomUUID();
    const mostHits = random.pick([1, 1, 3]);
    for (let step = random.whole(1, 300); step > 0; step -= 1) {
      if (random.chance(0.6)) {
        const start = newId();
        const isKnown = random.chance(0.1) && known.length > 0;
        const id = isKnown ? random.pick(known) : start + randomUUID().slice(start.length);
        const hits = random.chance(0.1) ? random.whole(1, mostHits) : 1;
        expect(ids.add(id, hits)).toBe(true);
        // An id that is there stays as it is.
        if (!model.has(id)) model.set(id, hits);
        known.push(id);
      } else if (random.chance(0.2)) {
        const id = random.chance(0.1) || known.length === 0 ? randomUUID() : random.pick(known);
        const hits = random.whole(0, mostHits);
        expect(ids.reserve(id, hits)).toBe(true);
        expect(ids.amend(id, hits)).toBe(model.has(id));
        if (model.has(id)) model.set(id, hits);
      } else {
        const id = random.chance(0.1) || known.length === 0 ? randomUUID() : random.pick(known);
        expect(ids.release(id)).toBe(model.delete(id));
      }
      const left = [...model.values()].reduce((sum, hits) => sum + hits, 0);
      expect(ids.size).toBe(model.size);
      expect(ids.hits).toBe(left);
    }
    ids.clear();
    expect(ids.hits).toBe(0);
    for (const id of known) expect(ids.release(id)).toBe(false);
  }
  expect(room.taken).toBe(0);
});

test('has hits once an id has several, until the next window', () => {
  const ids = new ApprovedIds(new MemoryBudget(Infinity));
  ids.add(randomUUID(), 1);
  expect(ids.hasHits).toBe(false);
  ids.add(ID, 2);
  expect(ids.hasHits).toBe(true);
  ids.release(ID);
  expect(ids.hasHits).toBe(true);
  ids.clear();
  expect(ids.hasHits).toBe(false);
});

test.each([
  ['in capital letters', ID.toUpperCase()],
  ['with one capital letter', ID.replace('f', 'F')],
  ['with blanks', ` ${ID}`],
  ['without dashes', ID.replaceAll('-', '')],
  ['with another dash', ID.replace('-', '_')],
  ['with a digit too few', ID.slice(1)],
  ['with a digit of another script', ID.replace('8', '８')],
  ['with a letter that is not a digit', ID.replace('a', 'g')],
  ['of zeros', '00000000-0000-0000-0000-000000000000'],
  ['of nothing', ''],
])('an id is found by its exact text: not %s', (_how, text) => {
  const ids = new ApprovedIds(new MemoryBudget(Infinity));
  ids.add(ID, 2);
  expect(ids.release(text)).toBe(false);
  expect(ids.release(ID)).toBe(true);
});

test.each([
  ['of zeros', '00000000-0000-0000-0000-000000000000'],
  ['with zeros in its second number', '12345678-0000-0000-8123-456789abcdef'],
  ['with zeros in all but one number', '00000000-0000-0000-0000-000000000001'],
  ['of ones', 'ffffffff-ffff-ffff-ffff-ffffffffffff'],
])('an id %s is remembered like any other', (_which, id) => {
  const ids = new ApprovedIds(new MemoryBudget(Infinity));
  ids.add(randomUUID(), 1);
  expect(ids.release(id)).toBe(false);
  for (const hits of [3, 1]) expect(ids.add(id, hits)).toBe(true);
  // The table grows.
  for (let added = 0; added < 100; added += 1) ids.add(randomUUID(), 1);
  expect([ids.size, ids.hits, ids.hitsOf(id)]).toEqual([102, 104, 3]);
  expect([ids.release(id), ids.release(id)]).toEqual([true, false]);
});

test.each([100, 1000, 20_000])('an id of %i takes at most 30 bytes', (count) => {
  const room = new MemoryBudget(Infinity);
  const ids = new ApprovedIds(room);
  for (let added = 0; added < count; added += 1) ids.add(randomUUID(), 1);
  expect(room.taken / count).toBeLessThanOrEqual(30);
});

test('an id without room in memory changes nothing', () => {
  const room = new MemoryBudget(1000);
  const ids = new ApprovedIds(room);
  const added: string[] = [];
  for (let id = randomUUID(); ids.add(id, 1); id = randomUUID()) added.push(id);
  expect([ids.hits, ids.add(randomUUID(), 1), room.isFull]).toEqual([added.length, false, true]);
  expect(room.taken).toBeLessThanOrEqual(1000);

  expect(added.map((id) => ids.release(id))).toEqual(added.map(() => true));
  expect(ids.add(randomUUID(), 1)).toBe(true);
});

test('a process gives a limiter half of the heap that others do not need', () => {
  const mebibytes = [80, 112, 560, 4144].map((heap) => memoryIn(heap * 2 ** 20) / 2 ** 20);
  expect(mebibytes).toEqual([4, 8, 232, 2024]);
});

test('a copy counts the ids of the original, and its changes leave the original as it is', () => {
  const room = new MemoryBudget(Infinity);
  const ids = new ApprovedIds(room);
  const counts = (of: ApprovedIds) => [of.size, of.hits, of.hasHits];
  ids.add(ID, 1);
  const { taken } = room;
  const copy = ids.copy();
  expect(counts(copy)).toEqual([1, 1, false]);
  copy.add(randomUUID(), 3);
  expect(counts(copy)).toEqual([2, 4, true]);
  expect(counts(copy.copy())).toEqual([2, 4, true]);
  copy.clear();
  expect(counts(copy)).toEqual([0, 0, false]);
  expect([counts(ids), ids.hitsOf(ID), room.taken]).toEqual([[1, 1, false], 1, taken]);
});
