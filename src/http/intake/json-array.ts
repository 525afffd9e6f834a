import { isUtf8 } from 'node:buffer';

import type { Request, Response } from 'express';

import { MAX_ELEMENTS } from '../../api/bulk-schemas.js';
import type { BodyBudget, BodyMemory } from '../../service/callers/body-budget.js';
import type { Slices } from '../../service/deciding/slices.js';
import { serviceError } from '../../service/errors.js';

/**
 * The most bytes that are parsed in one go, and the most of an element. The worst of them (names, nesting, empty objects)
 * take less than a millisecond. A valid element has less, even if each character of its key is escaped.
 */
export const MAX_ELEMENT_BYTES = 4096;
/** How many bytes are looked at in one go, which takes a fiftieth of the time of parsing. */
const SCANNED_BYTES = 64 * 1024;
/** More fields than any valid element has. */
const MAX_FIELDS = 10;

/** Stands for an element of more than {@link MAX_ELEMENT_BYTES}, which is not parsed. */
export const TOO_LONG = Symbol('too long');

/** The bytes of an element, without the white space around it. */
interface Span {
  readonly start: number;
  readonly end: number;
}

/** Successive elements that are parsed in one go. */
interface Piece extends Span {
  readonly count: number;
}

/**
 * Reads the elements of the JSON array in a body, little by little. `JSON.parse` of a whole body of 1 MiB would block the
 * event loop for 200 ms if its sender chose the worst.
 * @yields after each step, so that others get a slice. A typical body takes one step.
 * @throws ServiceError INVALID_BODY
 */
function* elementsIn(body: Buffer): Generator<undefined, readonly unknown[]> {
  // Bytes that are not UTF-8 would become other text, and perhaps the key of another caller.
  if (!isUtf8(body)) throw invalid('JSON in UTF-8');
  const elements: unknown[] = [];
  let count = 0;
  let piece: Piece | undefined;
  for (const span of spansIn(body)) {
    if (!span) {
      yield;
      continue;
    }
    count += 1;
    if (count > MAX_ELEMENTS) continue;
    if (piece && span.end - piece.start > MAX_ELEMENT_BYTES) {
      elements.push(...parse(body, piece));
      piece = undefined;
      yield;
    }
    if (span.end - span.start > MAX_ELEMENT_BYTES) elements.push(TOO_LONG);
    else
      piece = { start: piece?.start ?? span.start, end: span.end, count: (piece?.count ?? 0) + 1 };
  }
  if (count > MAX_ELEMENTS) throw invalid(`an array of at most ${MAX_ELEMENTS}, not ${count}`);
  const isEmpty = count === 1 && piece?.start === piece?.end;
  if (piece && !isEmpty) elements.push(...parse(body, piece));
  return elements;
}

const [QUOTE, BACKSLASH, COMMA] = [0x22, 0x5c, 0x2c];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];
const NONE = -1;

/**
 * Finds where the elements of an array begin and end. What is between is not checked: an element that is parsed later
 * without an error is what it was taken for here.
 * @yields undefined where it may pause; an empty span for `[]`, or for an element that is missing
 */
function* spansIn(body: Buffer): Generator<Span | undefined> {
  let depth = 0;
  let isOver = false;
  let isInText = false;
  let isEscaped = false;
  let start = NONE;
  let end = NONE;
  for (let at = 0; at < body.length; at += 1) {
    if (at % SCANNED_BYTES === SCANNED_BYTES - 1) yield undefined;
    const byte = body[at] ?? 0;
    if (isInText) {
      if (isEscaped) isEscaped = false;
      else if (byte === BACKSLASH) isEscaped = true;
      else if (byte === QUOTE) {
        isInText = false;
        end = at + 1;
      }
    } else if (!isWhiteSpace(byte)) {
      if (depth === 0) {
        if (isOver || byte !== OPEN_ARRAY) throw notAnArray();
        depth = 1;
      } else if (depth === 1 && (byte === COMMA || byte === CLOSE_ARRAY)) {
        yield start === NONE ? { start: at, end: at } : { start, end };
        start = NONE;
        isOver = byte === CLOSE_ARRAY;
        if (isOver) depth = 0;
      } else {
        if (start === NONE) start = at;
        end = at + 1;
        if (byte === QUOTE) isInText = true;
        else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) depth += 1;
        else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) depth -= 1;
        if (depth === 0) throw notAnArray();
      }
    }
  }
  if (!isOver) throw notAnArray();
}

function isWhiteSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

function parse(body: Buffer, { start, end, count }: Piece): unknown[] {
  let array: unknown[];
  try {
    array = JSON.parse(`[${body.toString('utf8', start, end)}]`) as unknown[];
  } catch {
    throw notAnArray();
  }
  // Nothing between two commas is no element, also if the piece has nothing else.
  if (array.length !== count) throw notAnArray();
  return array.map(flat);
}

/**
 * An element without nested values and excess fields, which no valid element has: they would take twenty times their
 * bytes of the body in memory. The rest is rejected for the same reason as the element.
 */
function flat(element: unknown): unknown {
  if (typeof element !== 'object' || element === null) return element;
  if (Array.isArray(element)) return null;
  const fields = element as Record<string, unknown>;
  let count = 0;
  for (const name in fields) {
    count += 1;
    if (count > MAX_FIELDS || isNested(fields[name])) return flattened(fields);
  }
  return element;
}

function flattened(fields: Readonly<Record<string, unknown>>): object {
  const first = Object.entries(fields).slice(0, MAX_FIELDS);
  return Object.fromEntries(first.map(([name, value]) => [name, isNested(value) ? null : value]));
}

function isNested(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

function notAnArray(): Error {
  return invalid('a JSON array');
}

function invalid(what: string): Error {
  return serviceError('INVALID_BODY', { what });
}

const JSON_TYPE = /^application\/json *(?:;|$)/i;

/** The memory that an element takes besides its text, until its bulk request ends. */
export const BYTES_OF_ELEMENT = 128;

/**
 * Reads the JSON array in the body of a request that was taken in during the same tick, in slices,
 * and passes it to `work`, unless the client disconnects before the end of the body.
 * @throws ServiceError UNSUPPORTED_BODY, BODY_TOO_LARGE, NO_ROOM_FOR_BODY or INVALID_BODY
 */
export async function withJsonArray(
  request: Request,
  response: Response,
  { budget, slices }: { readonly budget: BodyBudget; readonly slices: Pick<Slices, 'next'> },
  work: (elements: readonly unknown[]) => Promise<void>,
): Promise<void> {
  const { headers } = request;
  const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = headers;
  if (!JSON_TYPE.test(type)) throw unsupported('Content-Type', 'application/json');
  // A small compressed body may expand to a large one.
  if (encoding.toLowerCase() !== 'identity') throw unsupported('Content-Encoding', 'identity');
  // The length of a chunked body is known only at its end.
  const announced = Number(headers['content-length'] ?? MAX_BODY_BYTES);
  if (announced > MAX_BODY_BYTES) throw tooLarge();
  const { context } = response.locals;
  const memory = budget.memoryFor(context.owner);
  try {
    const body = await readBody(request, announced, memory);
    if (!body) return;
    const reading = elementsIn(body);
    let step;
    do {
      await slices.next(context, 1);
      step = reading.next();
    } while (!step.done);
    const elements = step.value;
    memory.take(elements.length * BYTES_OF_ELEMENT);
    // Called at once, so that the slice goes on.
    await work(elements);
  } finally {
    memory.giveBack();
  }
}

/**
 * Reads a body. A body that is rejected is still read to its end, and discarded: its client may not read an answer
 * before it has sent everything.
 * @returns undefined if the client disconnected before the body's end
 */
async function readBody(
  request: Request,
  announced: number,
  memory: BodyMemory,
): Promise<Buffer | undefined> {
  return new Promise((resolve, reject) => {
    let body: BodyBuffer | undefined = new BodyBuffer(memory, announced);
    let rejection: Error | undefined;
    request.on('data', (chunk: Buffer) => {
      try {
        body?.append(chunk);
      } catch (error) {
        rejection = error as Error;
        body = undefined;
        memory.giveBack();
      }
    });
    request.once('end', () => {
      if (rejection) reject(rejection);
      else resolve(body?.bytes);
    });
    // No effect after the end of the body.
    request.once('close', () => resolve(undefined));
  });
}

function unsupported(header: string, value: string): Error {
  return serviceError('UNSUPPORTED_BODY', { header, value });
}

/** More than a bulk request of the most elements needs, with the longest keys and overrides. */
export const MAX_BODY_BYTES = 1024 * 1024;

/**
 * Collects the bytes of a body in one piece of memory. A list of chunks would take a hundred times the body's bytes if
 * each chunk has one byte.
 */
export class BodyBuffer {
  #buffer: Buffer = Buffer.alloc(0);
  #length = 0;

  /** @param announced how many bytes the sender has announced */
  constructor(
    private readonly memory: Pick<BodyMemory, 'take'>,
    private readonly announced = MAX_BODY_BYTES,
  ) {}

  /** @throws ServiceError BODY_TOO_LARGE or NO_ROOM_FOR_BODY */
  append(chunk: Buffer): void {
    const length = this.#length + chunk.length;
    if (length > MAX_BODY_BYTES) throw tooLarge();
    if (length > this.#buffer.length) this.#grow(length, chunk);
    else chunk.copy(this.#buffer, this.#length);
    this.#length = length;
  }

  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length);
  }

  #grow(length: number, chunk: Buffer): void {
    const before = this.#buffer;
    // Nearly all bodies come in one chunk, which is kept without a copy.
    const isFirst = before.length === 0;
    const doubled = Math.min(2 * before.length, this.announced);
    const size = isFirst ? length : Math.max(length, doubled);
    this.memory.take(size - before.length);
    // Not from Node's pool: a small piece of it would keep the whole pool in memory.
    this.#buffer = isFirst ? chunk : Buffer.allocUnsafeSlow(size);
    if (isFirst) return;
    before.copy(this.#buffer, 0, 0, this.#length);
    chunk.copy(this.#buffer, this.#length);
  }
}

function tooLarge(): Error {
  return serviceError('BODY_TOO_LARGE', { max: MAX_BODY_BYTES });
}
