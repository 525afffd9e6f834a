import { isUtf8 } from 'node:buffer';

import { MAX_ELEMENTS } from '../../api/bulk-schemas.js';
import { serviceError } from '../../service/service-error.js';

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
export function* elementsIn(body: Buffer): Generator<undefined, readonly unknown[]> {
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
