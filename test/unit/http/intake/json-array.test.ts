import { jest } from '@jest/globals';
import { Readable } from 'node:stream';

import type { Request, Response } from 'express';

import {
  BODY_BYTES,
  BodyBudget,
  type BodyMemory,
} from '../../../../src/service/callers/body-budget.js';
import { extent } from '../../../support/extent.js';
import { COSTLY_BODIES } from '../../../support/costly-bodies.js';
import { MAX_ELEMENT_BYTES, TOO_LONG } from '../../../../src/http/intake/array-elements.js';
import { withJsonArray } from '../../../../src/http/intake/json-array.js';

interface Found {
  readonly elements: readonly unknown[];
  /** How many bytes of the budget the caller takes while the elements are in use. */
  readonly taken: number;
  /** How many slices reading them took. */
  readonly slices: number;
}

/** What is found in a text. */
async function elementsOf(text: string): Promise<Found> {
  const budget = new BodyBudget();
  const body = Buffer.from(text);
  const request = Object.assign(Readable.from([body]), {
    headers: { 'content-type': 'application/json', 'content-length': String(body.length) },
    socket: { remoteAddress: 'here' },
  }) as unknown as Request;
  const found: Found[] = [];
  let slices = 0;
  const next = (_taker: unknown, wanted: number): Promise<number> => {
    slices += 1;
    return Promise.resolve(wanted);
  };
  await withJsonArray(
    request,
    { locals: { context: { owner: 'here' } } } as unknown as Response,
    { budget, slices: { next } },
    (elements) => {
      found.push({ elements, taken: BODY_BYTES.caller - bytesLeft(budget), slices });
      return Promise.resolve();
    },
  );
  expect(bytesLeft(budget)).toBe(BODY_BYTES.caller);
  return found[0]!;
}

/** How many more bytes the caller may take, over as many connections as necessary. */
function bytesLeft(budget: BodyBudget): number {
  let left = 0;
  const memories: BodyMemory[] = [];
  for (let part = BODY_BYTES.caller / 2; part >= 1; part /= 2) {
    for (let again = true; again;) {
      const memory = budget.memoryFor('here');
      try {
        memory.take(part);
        memories.push(memory);
        left += part;
      } catch {
        again = false;
      }
    }
  }
  for (const memory of memories) memory.giveBack();
  return left;
}

test('objects of a few plain values are kept as elements unchanged', async () => {
  const elements = [{ key: 'a' }, { key: 'b', maxRequests: 1, x: null }, 'text', 1, null, true];

  expect((await elementsOf(JSON.stringify(elements))).elements).toEqual(elements);
});

test('nested values of other elements are dropped, and fields beyond those of any valid element', async () => {
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`f${i}`, i]));
  const nested = `[${'{},'.repeat(1000)}{}]`;
  const { elements } = await elementsOf(
    `[${nested},{"key":${nested}},{"key":{"a":1},"maxRequests":2},${JSON.stringify(many)}]`,
  );

  expect(elements.slice(0, 3)).toEqual([null, { key: null }, { key: null, maxRequests: 2 }]);
  expect(Object.keys(elements[3] as object)).toHaveLength(10);
});

test('an element of more bytes than any valid one is not parsed, and the others are', async () => {
  const longest = JSON.stringify('x'.repeat(MAX_ELEMENT_BYTES - 2));
  const longer = JSON.stringify('x'.repeat(MAX_ELEMENT_BYTES - 1));
  const spaces = ' \n'.repeat(MAX_ELEMENT_BYTES);
  const text = `[1,${longest},${longer},{"key":"a"}${spaces},${spaces}2]`;

  expect((await elementsOf(text)).elements).toEqual([
    ...[1, JSON.parse(longest) as string, TOO_LONG],
    ...[{ key: 'a' }, 2],
  ]);
});

test('a typical body takes one slice, and a large one a slice for each few KiB', async () => {
  const keys = (count: number) => JSON.stringify(Array(count).fill({ key: 'x'.repeat(512) }));
  const [few, many] = [await elementsOf(keys(7)), await elementsOf(keys(1000))];

  expect(few.slices).toBe(1);
  expect(many.slices).toBeGreaterThan(keys(1000).length / MAX_ELEMENT_BYTES);
  expect(many.elements).toHaveLength(1000);
});

test.each(Object.entries(COSTLY_BODIES))(
  'a body of %s is parsed by a few KiB at a time',
  async (_what, text) => {
    const parse = jest.spyOn(JSON, 'parse');
    try {
      await elementsOf(text).catch(() => undefined);
      const lengths = parse.mock.calls.map(([part]) => part.length);

      expect(Math.max(0, ...lengths)).toBeLessThanOrEqual(MAX_ELEMENT_BYTES + '[]'.length);
    } finally {
      parse.mockRestore();
    }
  },
);

const PARTS = [',', ',', '[', ']', '{', '}', '"', '\\', ':', '1', ' ', 'null', '"a"', '{"a":1}'];

test('a text is read as JSON.parse reads it, however its parts are combined', async () => {
  let seed = 7;
  const random = (below: number): number => {
    seed = (seed * 48271) % 2147483647;
    return seed % below;
  };
  let valid = 0;
  for (let count = 0; count < extent(1000, 5000); count += 1) {
    const parts = Array.from({ length: random(9) }, () => PARTS[random(PARTS.length)]!);
    const padding = ' '.repeat(random(2) * MAX_ELEMENT_BYTES);
    const text = `[${parts.join('').replaceAll(',', `,${padding}`)}]`;
    const read = await elementsOf(text).then(
      ({ elements }) => elements,
      (error: unknown) => (error as Error).message,
    );
    let parsed: unknown[] | undefined;
    try {
      parsed = JSON.parse(text) as unknown[];
    } catch {
      // An element that is too long is rejected alone, whatever is in it.
      if (Array.isArray(read) && read.includes(TOO_LONG)) continue;
      expect([text, read]).toEqual([text, 'the body must be a JSON array']);
      continue;
    }
    valid += 1;
    expect(read).toHaveLength(parsed.length);
  }
  expect(valid).toBeGreaterThan(20);
});

test('elements take memory in addition to their text, and give it back', async () => {
  const text = JSON.stringify(Array(1000).fill({ key: 'a' }));

  expect((await elementsOf(text)).taken).toBe(text.length + 1000 * 128);
});
