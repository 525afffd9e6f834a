import { Readable } from 'node:stream';

import type { Request, Response } from 'express';

import { BODY_BYTES, type BodyPlace, BodyRoom } from '../../../../src/http/intake/body-room.js';
import { withJsonArray } from '../../../../src/http/intake/json-array.js';

/** The elements of a text, and how many bytes of room its caller takes while they are in use. */
async function elementsOf(text: string): Promise<{ elements: readonly unknown[]; taken: number }> {
  const room = new BodyRoom();
  const body = Buffer.from(text);
  const request = Object.assign(Readable.from([body]), {
    headers: { 'content-type': 'application/json', 'content-length': String(body.length) },
    socket: { remoteAddress: 'here' },
  }) as unknown as Request;
  const found: { elements: readonly unknown[]; taken: number }[] = [];
  await withJsonArray(
    request,
    { locals: { context: {} } } as unknown as Response,
    room,
    (elements) => {
      found.push({ elements, taken: BODY_BYTES.caller - roomLeft(room) });
      return Promise.resolve();
    },
  );
  expect(roomLeft(room)).toBe(BODY_BYTES.caller);
  return found[0]!;
}

/** How many more bytes the caller may take, over as many connections as necessary. */
function roomLeft(room: BodyRoom): number {
  let left = 0;
  const places: BodyPlace[] = [];
  for (let part = BODY_BYTES.connection / 2; part >= 1; part /= 2) {
    for (let again = true; again;) {
      const place = room.enter({ caller: 'here', connection: {} });
      try {
        place.take(part);
        places.push(place);
        left += part;
      } catch {
        again = false;
      }
    }
  }
  for (const place of places) place.leave();
  return left;
}

test('objects of a few plain values are kept as elements unchanged', async () => {
  const elements = [{ key: 'a' }, { key: 'b', maxRequests: 1, x: null }, 'text', 1, null, true];

  expect((await elementsOf(JSON.stringify(elements))).elements).toEqual(elements);
});

test('nested values of other elements are dropped, and fields beyond those of any valid element', async () => {
  const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, i) => [`f${i}`, i]));
  const nested = `[${'{},'.repeat(10_000)}{}]`;
  const { elements } = await elementsOf(
    `[${nested},{"key":${nested}},{"key":{"a":1},"maxRequests":2},${JSON.stringify(many)}]`,
  );

  expect(elements.slice(0, 3)).toEqual([null, { key: null }, { key: null, maxRequests: 2 }]);
  expect(Object.keys(elements[3] as object)).toHaveLength(8);
});

test('elements take room in addition to their text, and give it back', async () => {
  const text = JSON.stringify(Array(1000).fill({ key: 'a' }));

  expect((await elementsOf(text)).taken).toBe(text.length + 1000 * 128);
});
