import { isUtf8 } from 'node:buffer';

import { status } from '@grpc/grpc-js';

import {
  CODES,
  type DescriptorStatus,
  OVERRIDE_UNITS,
  type RateLimitRequest,
  type RateLimitResponse,
  UNITS,
} from './messages.js';

/** Why a call fails, as its client is told. */
export interface CallFailure {
  readonly code: status;
  readonly details: string;
}

/** A message's compressed flag and length: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md */
const FRAME_HEAD_BYTES = 5;

/** The one message of a call, as it comes in pieces. */
export class RequestFrames {
  #pieces: Buffer[] = [];
  #size = 0;
  /** Of the message; undefined until its head is there. */
  #length: number | undefined;

  constructor(readonly maxBytes: number) {}

  /** @returns why the call fails, if its message is too long, or another one follows */
  add(piece: Buffer): CallFailure | undefined {
    this.#pieces.push(piece);
    this.#size += piece.length;
    if (this.#length === undefined) {
      if (this.#size < FRAME_HEAD_BYTES) return undefined;
      // Nearly all calls come in one piece.
      const head = this.#pieces.length > 1 ? Buffer.concat(this.#pieces) : piece;
      this.#pieces = [head];
      this.#length = head.readUInt32BE(1);
    }
    if (this.#length > this.maxBytes) {
      const details = `the message has ${this.#length} bytes, and may have ${this.maxBytes}`;
      return { code: status.RESOURCE_EXHAUSTED, details };
    }
    if (this.#size <= FRAME_HEAD_BYTES + this.#length) return undefined;
    return { code: status.UNIMPLEMENTED, details: 'a call has one message' };
  }

  /** @returns the message, when the request has ended; undefined if a part of it is missing */
  end(): { readonly isCompressed: boolean; readonly bytes: Buffer } | undefined {
    if (this.#length === undefined || this.#size < FRAME_HEAD_BYTES + this.#length)
      return undefined;
    const [first] = this.#pieces;
    const framed = this.#pieces.length === 1 && first ? first : Buffer.concat(this.#pieces);
    this.#pieces = [];
    return { isCompressed: framed[0] === 1, bytes: framed.subarray(FRAME_HEAD_BYTES) };
  }
}

/** The ways in which values are written: https://protobuf.dev/programming-guides/encoding/ */
const [VARINT, FIXED_64, BYTES, GROUP, GROUP_END, FIXED_32] = [0, 1, 2, 3, 4, 5] as const;
const WAY_BITS = 3;
const WAYS = 7;
const [LOW_BITS, GOES_ON] = [0x7f, 0x80];
/** Of 64 bits. */
const MAX_VARINT_BYTES = 10;

interface Field {
  readonly name: string;
  readonly way: typeof VARINT | typeof BYTES;
  /** The value of a field that is not there. */
  readonly none: 0 | false | null | string;
  /** Of an enum: its names by their numbers. */
  readonly names?: readonly string[];
  /** Of a message: its fields in the order of their numbers, the first of which is 1. */
  readonly fields?: readonly Field[];
  readonly isRepeated?: boolean;
}

const number = (name: string): Field => ({ name, way: VARINT, none: 0 });
const flag = (name: string): Field => ({ name, way: VARINT, none: false });
const text = (name: string): Field => ({ name, way: BYTES, none: '' });
const oneOf = (name: string, names: readonly string[]): Field => ({
  ...{ name, way: VARINT, none: names[0] ?? '', names },
});
const message = (name: string, fields: readonly Field[], isRepeated = false): Field => ({
  ...{ name, way: BYTES, none: null, fields, isRepeated },
});

/** As in `proto/`. */
const DESCRIPTOR = [
  message('entries', [text('key'), text('value')], true),
  message('limit', [number('requests_per_unit'), oneOf('unit', OVERRIDE_UNITS)]),
  message('hits_addend', [number('value')]),
  flag('is_negative_hits'),
];
const REQUEST = [text('domain'), message('descriptors', DESCRIPTOR, true), number('hits_addend')];

/** Replaces a text that is not UTF-8: half a surrogate pair, which UTF-8 can't encode. */
export const NOT_UTF8 = '\ud800';
/** Decoding replaces bytes that are not UTF-8 with this character. A valid text may also contain it. */
const REPLACEMENT = '\ufffd';
/** More fields than 100 descriptors of 30 entries have. Without a bound, a message of 256 KiB takes 5 MB and 0.4 s. */
const MAX_FIELDS = 10_000;

/** A message that is not a request. Its text is the end of a sentence. */
export class UnreadableMessage extends Error {}

function unreadable(): UnreadableMessage {
  return new UnreadableMessage('be a RateLimitRequest');
}

/** Reads a message. protobufjs neither bounds the number of fields nor marks texts that are not UTF-8, which would share a key. */
class MessageReader {
  #at = 0;
  #left = MAX_FIELDS;

  constructor(private readonly bytes: Buffer) {}

  /** Reads the message that ends at `end`. @throws UnreadableMessage */
  read(fields: readonly Field[], end: number): unknown {
    const message: Record<string, unknown> = {};
    for (const { name, none, isRepeated } of fields) message[name] = isRepeated ? [] : none;
    while (this.#at < end) {
      const tag = this.#tag(end);
      const field = fields[(tag >>> WAY_BITS) - 1];
      if (field?.way !== (tag & WAYS)) {
        this.#skip(tag, end);
        continue;
      }
      const value = this.#value(field, end);
      if (field.isRepeated) (message[field.name] as unknown[]).push(value);
      else message[field.name] = value;
    }
    return message;
  }

  /** The number of the next field, and how it is written. */
  #tag(end: number): number {
    this.#left -= 1;
    if (this.#left < 0) throw new UnreadableMessage(`have at most ${MAX_FIELDS} fields`);
    const tag = this.#varint(end);
    if (tag < 1 << WAY_BITS || tag >= 2 ** 32) throw unreadable();
    return tag;
  }

  #value({ way, none, names, fields }: Field, end: number): unknown {
    const number = this.#varint(end);
    if (way === BYTES) {
      const start = this.#advance(number, end);
      if (!fields) return this.#text(start);
      this.#at = start;
      return this.read(fields, start + number);
    }
    if (names) return names[number] ?? none;
    return none === false ? number > 0 : number;
  }

  #text(start: number): string {
    const text = this.bytes.toString('utf8', start, this.#at);
    const isDoubtful = text.includes(REPLACEMENT);
    return isDoubtful && !isUtf8(this.bytes.subarray(start, this.#at)) ? NOT_UTF8 : text;
  }

  /** A number of up to 64 bits as a double: all that are valid are small. */
  #varint(end: number): number {
    let value = 0;
    for (let i = 0, unit = 1; i < MAX_VARINT_BYTES; i += 1, unit *= GOES_ON) {
      const byte = this.bytes[this.#advance(1, end)] ?? 0;
      value += (byte & LOW_BITS) * unit;
      if (byte < GOES_ON) return value;
    }
    throw unreadable();
  }

  #skip(tag: number, end: number): void {
    const way = tag & WAYS;
    if (way === VARINT) this.#varint(end);
    else if (way === BYTES) this.#advance(this.#varint(end), end);
    else if (way === FIXED_32) this.#advance(4, end);
    else if (way === FIXED_64) this.#advance(8, end);
    else if (way === GROUP) this.#skipGroup(end);
    else throw unreadable();
  }

  #skipGroup(end: number): void {
    for (let open = 1; open > 0;) {
      const tag = this.#tag(end);
      const way = tag & WAYS;
      if (way === GROUP) open += 1;
      else if (way === GROUP_END) open -= 1;
      else this.#skip(tag, end);
    }
  }

  /** @returns where it was */
  #advance(bytes: number, end: number): number {
    const start = this.#at;
    if (bytes > end - start) throw unreadable();
    this.#at = start + bytes;
    return start;
  }
}

/** @throws UnreadableMessage */
export function decodeRequest(bytes: Buffer): RateLimitRequest {
  return new MessageReader(bytes).read(REQUEST, bytes.length) as RateLimitRequest;
}

/**
 * Writes a message from its end, so that the length of each part is known where it is written. Zeros and empty texts are left out.
 * protobufjs would take three times as long.
 */
class ReverseWriter {
  #bytes = Buffer.allocUnsafe(4096);
  #at = this.#bytes.length;

  get size(): number {
    return this.#bytes.length - this.#at;
  }

  /** Forgets what was written, of a message that may have failed in its middle. */
  clear(): void {
    this.#at = this.#bytes.length;
  }

  number(field: number, value: number): void {
    if (value === 0) return;
    this.#varint(value);
    this.#varint((field << WAY_BITS) | VARINT);
  }

  text(field: number, text: string): void {
    if (text === '') return;
    const { size } = this;
    this.#reserve(3 * text.length);
    let left = text.length;
    // Faster than `write` for texts as short as most are.
    for (; left > 0; left -= 1) {
      const code = text.charCodeAt(left - 1);
      if (code >= GOES_ON) break;
      this.#at -= 1;
      this.#bytes[this.#at] = code;
    }
    if (left > 0) {
      const rest = text.slice(0, left);
      this.#at -= Buffer.byteLength(rest);
      this.#bytes.write(rest, this.#at);
    }
    this.begin(field, size);
  }

  /** Begins a text or a message. @param sizeAfter the size before its last part was written */
  begin(field: number, sizeAfter: number): void {
    this.#varint(this.size - sizeAfter);
    this.#varint((field << WAY_BITS) | BYTES);
  }

  /** @returns the message in its frame */
  takeFrame(): Buffer {
    const length = this.size;
    this.#reserve(FRAME_HEAD_BYTES);
    this.#at -= FRAME_HEAD_BYTES;
    this.#bytes[this.#at] = 0;
    this.#bytes.writeUInt32BE(length, this.#at + 1);
    return Buffer.from(this.#bytes.subarray(this.#at));
  }

  #varint(value: number): void {
    this.#reserve(MAX_VARINT_BYTES);
    let length = 1;
    for (let rest = value; rest >= GOES_ON; rest = Math.floor(rest / GOES_ON)) length += 1;
    this.#at -= length;
    let rest = value;
    for (let i = 0; i < length - 1; i += 1) {
      this.#bytes[this.#at + i] = (rest % GOES_ON) + GOES_ON;
      rest = Math.floor(rest / GOES_ON);
    }
    this.#bytes[this.#at + length - 1] = rest;
  }

  #reserve(bytes: number): void {
    if (bytes <= this.#at) return;
    const written = this.#bytes.subarray(this.#at);
    this.#bytes = Buffer.allocUnsafe(2 * (this.#bytes.length + bytes));
    this.#at = this.#bytes.length - written.length;
    written.copy(this.#bytes, this.#at);
  }
}

const writer = new ReverseWriter();

/** The numbers of the fields are those in `proto/`. @returns a reply in its frame */
export function encodeReply(reply: RateLimitResponse): Buffer {
  const { statuses, response_headers_to_add: headers } = reply;
  writer.clear();
  for (let i = headers.length - 1; i >= 0; i -= 1) writeHeader(headers[i]);
  for (let i = statuses.length - 1; i >= 0; i -= 1) writeStatus(statuses[i]);
  writer.number(1, CODES.indexOf(reply.overall_code));
  return writer.takeFrame();
}

function writeHeader(
  header: RateLimitResponse['response_headers_to_add'][number] | undefined,
): void {
  if (!header) return;
  const { size } = writer;
  writer.text(2, header.value);
  writer.text(1, header.key);
  writer.begin(3, size);
}

function writeStatus(of: DescriptorStatus | undefined): void {
  if (!of) return;
  const { current_limit: limit, duration_until_reset: duration } = of;
  const { size } = writer;
  if (duration) {
    writer.number(2, duration.nanos);
    writer.number(1, duration.seconds);
    writer.begin(4, size);
  }
  writer.number(3, of.limit_remaining ?? 0);
  if (limit) {
    const sizeAfter = writer.size;
    writer.text(3, limit.name);
    writer.number(2, UNITS.indexOf(limit.unit));
    writer.number(1, limit.requests_per_unit);
    writer.begin(2, sizeAfter);
  }
  writer.number(1, CODES.indexOf(of.code));
  writer.begin(2, size);
}

/** The message of a call as it arrived. It is decoded when its slice begins, and not kept by a call that waits. */
export class CallMessage {
  #bytes: Buffer;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get length(): number {
    return this.#bytes.length;
  }

  /** Decodes the message, and drops its bytes. @throws UnreadableMessage */
  take(): RateLimitRequest {
    const bytes = this.#bytes;
    this.#bytes = Buffer.of();
    return decodeRequest(bytes);
  }
}
