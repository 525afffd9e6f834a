import { Readable, PassThrough } from 'node:stream';
import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { setImmediate as nextTick } from 'node:timers/promises';

import { jest } from '@jest/globals';
import type { Request, Response } from 'express';

import {
  BODY_BYTES,
  BodyBudget,
  type BodyMemory,
} from '../../../src/service/callers/body-budget.js';
import { extent } from '../../support/extent.js';
import { COSTLY_BODIES } from '../../support/costly-bodies.js';
import {
  BodyBuffer,
  MAX_BODY_BYTES,
  MAX_ELEMENT_BYTES,
  TOO_LONG,
  withJsonArray,
} from '../../../src/http/intake/json-array.js';
import { pauseReading } from '../../../src/http/intake/connection-state.js';
import { HttpRequest } from '../../../src/http/intake/http-request.js';
import { holdEventLoop } from '../../support/hold-event-loop.js';
import { preferredWaitSeconds } from '../../../src/http/intake/parameters.js';
import { UNSENT_BYTES, UnsentAnswers } from '../../../src/http/replies/unsent-answers.js';

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

/** A body of these chunks, and how many bytes of the budget it has taken. */
function bodyOf(chunks: readonly Buffer[], announced?: number) {
  let taken = 0;
  const body = new BodyBuffer({ take: (bytes) => (taken += bytes) }, announced);
  for (const chunk of chunks) body.append(chunk);
  return { body, taken: () => taken };
}

const oneByte = (): Buffer => Buffer.allocUnsafeSlow(1).fill('x');

test.each([
  ['one byte each', Array.from({ length: 100_000 }, oneByte), undefined],
  ['one byte each, and announced', Array.from({ length: 100_000 }, oneByte), 100_000],
  ['a few, and many', [1, 70_000, 1, 30_000].map((size) => Buffer.alloc(size, 'y')), undefined],
  ['one', [Buffer.alloc(65_536, 'z')], 65_536],
  ['none', [], undefined],
])(
  'a body in chunks of %s is kept unchanged, in the memory that it has taken',
  (_, chunks, announced) => {
    const { body, taken } = bodyOf(chunks, announced);
    const whole = Buffer.concat(chunks);

    expect(body.bytes.equals(whole)).toBe(true);
    expect(taken()).toBe(body.bytes.buffer.byteLength);
    expect(taken()).toBeLessThanOrEqual(announced ?? 2 * whole.length);
  },
);

test('a body of the maximum size takes no more memory, and one more byte is too large', () => {
  const chunks = Array.from({ length: MAX_BODY_BYTES / 1024 }, () => Buffer.alloc(1024));
  const { body, taken } = bodyOf(chunks);

  expect(taken()).toBe(MAX_BODY_BYTES);
  expect(() => {
    body.append(oneByte());
  }).toThrow('the body must be at most 1048576 bytes');
});

/** Longer than a connection may be held up while a request waits. */
const STANDSTILL_MILLIS = 150;

function heldUpSocket(): Socket {
  const socket = new PassThrough() as unknown as Socket;
  pauseReading(socket);
  return socket;
}

const requestOn = (socket: Socket) =>
  new HttpRequest({ headers: {}, socket } as unknown as IncomingMessage);

test('a connection is cut if it is not read while a request waits', async () => {
  const socket = heldUpSocket();
  const cut = new Promise((resolve) => socket.once('close', resolve));
  await requestOn(socket).whilePresent(() => cut);
  expect(socket.destroyed).toBe(true);
});

test('a process that stood still handles arrived decisions before it cuts a connection', async () => {
  const socket = heldUpSocket();
  await nextTick();
  const decided = requestOn(socket).whilePresent(() => nextTick());
  holdEventLoop(STANDSTILL_MILLIS);
  await decided;
  await nextTick();
  expect(socket.destroyed).toBe(false);
});

test.each([
  ['wait=10', 10],
  ['wait=0', 0],
  ['WAIT = 10', 10],
  ['wait="10"', 10],
  ['wait=10; note=long', 10],
  ['respond-async, wait=10', 10],
  ['respond-async,wait=10,handling=lenient', 10],
  ['note="a, b", wait=10', 10],
  ['note="a \\" b", wait=10', 10],
  ['wait=10, wait=20', 10],
])('%s asks for %d s', (prefer, seconds) => {
  expect(preferredWaitSeconds(prefer)).toBe(seconds);
});

test.each([
  undefined,
  '',
  'wait',
  'wait=',
  'wait=-1',
  'wait=1.5',
  'wait=ten',
  'wait="10',
  'waits=10',
  'note="a, wait=10, b"',
  'handling=lenient',
  'wait=999999999',
  `wait=${'9'.repeat(30)}`,
  `${' '.repeat(250)}wait=10`,
  '"'.repeat(16_000),
])('%s asks for no usable wait', (prefer) => {
  expect(preferredWaitSeconds(prefer)).toBeUndefined();
});

describe('answers that are not sent', () => {
  const { connection: MOST, port: MOST_OF_PORT } = UNSENT_BYTES;
  const FULL = MOST_OF_PORT / MOST;

  let drops: string[];
  let unsent: UnsentAnswers;
  let stop: () => void;
  beforeEach(() => {
    drops = [];
    unsent = new UnsentAnswers();
    stop = unsent.watch(new Set(), 3_600_000, (reason) => drops.push(reason));
  });
  afterEach(() => {
    stop();
  });

  /** Connections, each with as many unsent bytes as it may have. */
  function fullConnections(count: number): Socket[] {
    return Array.from({ length: count }, () => {
      const socket = new Socket();
      unsent.add(socket, MOST);
      return socket;
    });
  }

  test('a connection may have as many unsent bytes as its bound', () => {
    const socket = new Socket();
    unsent.add(socket, MOST - 1);
    unsent.add(socket, 1);
    expect(socket.destroyed).toBe(false);

    unsent.add(socket, 1);
    expect(socket.destroyed).toBe(true);
    expect(drops).toEqual(['unread_answers']);
    expect(unsent.bytes).toBe(0);
  });

  test('bytes that are sent count no longer', () => {
    const socket = new Socket();
    for (let round = 0; round < 3; round += 1) {
      unsent.add(socket, MOST);
      unsent.sent(socket, MOST);
    }

    expect(socket.destroyed).toBe(false);
    expect(unsent.bytes).toBe(0);
  });

  test('beyond the bound of the port the connection goes that has sent nothing for the longest time', () => {
    const [first, second, ...others] = fullConnections(FULL);
    unsent.sent(first!, 1);
    unsent.add(first!, 1);
    const [newest] = fullConnections(1);

    expect(second!.destroyed).toBe(true);
    for (const socket of [first!, ...others, newest!]) expect(socket.destroyed).toBe(false);
    expect(drops).toEqual(['unread_answers']);
    expect(unsent.bytes).toBe(MOST_OF_PORT);
  });

  test('a connection that ends takes its unsent bytes along', async () => {
    const [socket] = fullConnections(1);
    socket!.destroy();
    await new Promise((resolve) => socket!.once('close', resolve));
    expect(unsent.bytes).toBe(0);

    unsent.sent(socket!, MOST);
    unsent.add(socket!, MOST);
    expect(unsent.bytes).toBe(0);
  });
});
