import { randomUUID, randomBytes } from 'node:crypto';

import { newUuid, parseUuid, UUID_WORDS } from '../../../../src/common/uuid.js';
import { ApprovedIds, scramble } from '../../../../src/limiter/memory/limits/approved-ids.js';
import { memoryIn, MemoryBudget } from '../../../../src/limiter/memory/memory-budget.js';
import { Random } from '../../../support/chaos/random.js';
import { RecentIds } from '../../../../src/limiter/memory/limits/recent-ids.js';

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

test('a text without characters is no UUID, also while none was made', () => {
  expect(parseUuid('', new Uint32Array(UUID_WORDS))).toBe(false);
});

test('new ids are UUIDs of version 4, and are found by their texts, in any order', () => {
  const made = Array.from({ length: 1000 }, newUuid);
  expect(new Set(made).size).toBe(made.length);
  const ids = new ApprovedIds(new MemoryBudget(Infinity));
  for (const id of [newUuid(), ...made]) {
    expect(id).toMatch(/^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
    const last = newUuid();
    for (const each of [last, id]) expect(ids.add(each, 1)).toBe(true);
    expect([ids.release(last), ids.release(last)]).toEqual([true, false]);
  }
  // All bits but those of the version and of the variant differ from id to id.
  const changing = new Uint32Array(UUID_WORDS);
  const [first, other] = [new Uint32Array(UUID_WORDS), new Uint32Array(UUID_WORDS)];
  expect(parseUuid(made[0]!, first)).toBe(true);
  for (const id of made) {
    expect(parseUuid(id, other)).toBe(true);
    for (const [i, word] of other.entries()) changing[i]! |= word ^ first[i]!;
  }
  expect([...changing]).toEqual([0xffffffff, 0xffff0fff, 0x3fffffff, 0xffffffff]);
  for (const id of made) expect(ids.release(id)).toBe(true);
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

describe('the ids of recent generations', () => {
  const BYTES_PER_ID = 250;

  let budget: MemoryBudget;
  let ids: RecentIds;
  beforeEach(() => {
    budget = new MemoryBudget(4 * BYTES_PER_ID);
    ids = new RecentIds(budget);
  });

  const add = (id: string, mark = 0): boolean => ids.add(id, { hits: 1, mark });
  const found = (...wanted: string[]): string[] =>
    wanted.filter((id) => ids.find(id) !== undefined);

  test('an id is kept with what it takes until it is removed', () => {
    expect(ids.add('a', { hits: 3, mark: 7 })).toBe(true);
    expect(ids.find('a')).toEqual({ hits: 3, mark: 7 });
    ids.find('a')!.hits = 2;
    expect(ids.find('a')).toEqual({ hits: 2, mark: 7 });
    ids.remove('a');
    expect([ids.find('a'), ids.size]).toEqual([undefined, 0]);
  });

  test('a generation is kept until the end of the next one', () => {
    add('a');
    ids.moveTo(0);
    ids.moveTo(1);
    add('b');
    expect([found('a', 'b'), ids.size]).toEqual([['a', 'b'], 2]);
    ids.moveTo(2);
    expect([found('a', 'b'), ids.size]).toEqual([['b'], 1]);
    ids.moveTo(3);
    expect([found('a', 'b'), ids.size]).toEqual([[], 0]);
  });

  test('after more than a generation without a call no id is left', () => {
    add('a');
    ids.moveTo(1);
    add('b');
    ids.moveTo(3);
    expect([found('a', 'b'), ids.size]).toEqual([[], 0]);
  });

  describe('the memory of an id', () => {
    test('is taken once if the id comes again', () => {
      add('a', 1);
      add('a', 2);
      expect(ids.find('a')).toEqual({ hits: 1, mark: 2 });
      expect([budget.taken, ids.size]).toEqual([BYTES_PER_ID, 1]);
    });

    test('is refused when there is none, so that nothing changes', () => {
      expect(['a', 'b', 'c', 'd', 'e'].map((id) => add(id))).toEqual([
        true,
        true,
        true,
        true,
        false,
      ]);
      expect([found('d', 'e'), ids.size]).toEqual([['d'], 4]);
      ids.remove('a');
      expect(add('e')).toBe(true);
    });

    test.each<[how: string, giveBack: () => void, left: number]>([
      [
        'its removal',
        () => {
          ids.remove('a');
        },
        3,
      ],
      [
        'the removal of one of an earlier generation',
        () => {
          ids.moveTo(1);
          ids.remove('a');
        },
        3,
      ],
      [
        'the end of the next generation',
        () => {
          ids.moveTo(1);
          ids.moveTo(2);
        },
        0,
      ],
      [
        'a long silence',
        () => {
          ids.moveTo(2);
        },
        0,
      ],
      [
        'the removal of all',
        () => {
          ids.moveTo(1);
          ids.clear();
        },
        0,
      ],
    ])('is given back once, by %s', (_how, giveBack, left) => {
      for (const id of ['a', 'b', 'c', 'd']) add(id);
      giveBack();
      giveBack();
      expect(budget.taken).toBe(left * BYTES_PER_ID);
      expect(ids.size).toBe(left);
    });
  });

  test('a copy counts the ids of each generation, and its changes leave the original as it is', () => {
    add('a');
    ids.moveTo(1);
    for (const id of ['b', 'c']) add(id);
    const copy = ids.copy();
    const sizes = [1, 2, 3].map((generation) => {
      copy.moveTo(generation);
      return copy.size;
    });
    expect(sizes).toEqual([3, 2, 0]);
    copy.add('d', { hits: 1, mark: 0 });
    expect(copy.size).toBe(1);
    copy.moveTo(5);
    expect(copy.size).toBe(0);
    copy.add('d', { hits: 1, mark: 0 });
    copy.clear();
    expect(copy.size).toBe(0);
    expect([found('a', 'b', 'c', 'd'), ids.size]).toEqual([['a', 'b', 'c'], 3]);
    expect(budget.taken).toBe(3 * BYTES_PER_ID);
  });
});

const COUNT = 20_000;
/** As full as a table of ids gets. */
const SLOTS = COUNT / 0.8;

const hex = (number: number, digits: number): string => number.toString(16).padStart(digits, '0');
const uuidOf = (digits: string): string =>
  digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

/** A UUIDv7 of the same minute. */
const ofMinute = (number: number): string =>
  uuidOf(
    hex(0x019a_bcde_0000 + 3 * number, 12) +
      `7${hex(number % 4096, 3)}` +
      randomBytes(8).toString('hex'),
  );
const countedFrom = (position: number, number: number): string =>
  uuidOf(hex(number, position).padEnd(32, '0'));

function hashOfText(id: string): number {
  const words = new Uint32Array(UUID_WORDS);
  if (!parseUuid(id, words)) throw new Error(id);
  scramble(words);
  return words[1]!;
}

test.each([
  ['that are random', () => randomUUID()],
  ['of UUIDv7 of the same minute', ofMinute],
  ['that count in the first number', (number: number) => countedFrom(8, number)],
  ['that count in the second number', (number: number) => countedFrom(16, number)],
  ['that count in the third number', (number: number) => countedFrom(24, number)],
  ['that count in the last number', (number: number) => countedFrom(32, number)],
  ['that differ in the upper half of the first number', (number: number) => countedFrom(5, number)],
])('ids %s find a slot in few steps', (_which, idOf) => {
  const taken = new Uint8Array(SLOTS);
  let steps = 0;
  for (let number = 0; number < COUNT; number += 1) {
    let slot = Math.floor((hashOfText(idOf(number)) / 2 ** 32) * SLOTS);
    for (; taken[slot] === 1; slot = (slot + 1) % SLOTS) steps += 1;
    taken[slot] = 1;
  }
  // With hashes that are random, two steps besides the first look.
  expect(steps / COUNT).toBeLessThan(4);
});
