import { isUtf8 } from 'node:buffer';
import { fileURLToPath } from 'node:url';

import { status } from '@grpc/grpc-js';
import protobuf from 'protobufjs';

import type { RateLimitRequest, RateLimitResponse, Unit } from './messages.js';

/** Why a call fails, as its client is told. */
export interface CallFailure {
  readonly code: status;
  readonly details: string;
}

/** Replaces a text that is not UTF-8: half a surrogate pair, which UTF-8 can't encode. */
export const NOT_UTF8 = '\ud800';
/** Decoding replaces bytes that are not UTF-8 with this character. A valid text may also contain it. */
const REPLACEMENT = '\ufffd';
/** More fields than 100 descriptors of 30 entries have. Without a bound, a message of 256 KiB takes 5 MB and 0.4 s. */
const MAX_FIELDS = 10_000;

/** A message that is not a request. Its text is the end of a sentence. */
export class UnreadableMessage extends Error {}

/**
 * Bounds the number of fields, and marks texts that are not UTF-8, which would share a key. protobufjs does neither. Numbers of
 * 64 bits are read as doubles: all that are valid are small.
 */
class StrictReader extends protobuf.BufferReader {
  /** Each field has a tag, and a length or a value. */
  #left = 2 * MAX_FIELDS;

  override uint32(): number {
    this.#left -= 1;
    if (this.#left < 0) throw new UnreadableMessage(`have at most ${MAX_FIELDS} fields`);
    return super.uint32();
  }

  override uint64(): protobuf.Long {
    return Number(super.uint64()) as unknown as protobuf.Long;
  }

  override string(): string {
    const bytes = this.bytes() as Buffer;
    const text = bytes.toString();
    return text.includes(REPLACEMENT) && !isUtf8(bytes) ? NOT_UTF8 : text;
  }
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

/** Next to `src` and to `dist`. */
export const PROTO_FOLDER = fileURLToPath(new URL('../../proto/', import.meta.url));

const root = new protobuf.Root();
root.resolvePath = (_origin, path) => (path.startsWith('google/') ? path : PROTO_FOLDER + path);
root.loadSync('envoy/service/ratelimit/v3/rls.proto', { keepCase: true });

const SERVICE = 'envoy.service.ratelimit.v3';
const requestType = root.lookupType(`${SERVICE}.RateLimitRequest`);
const responseType = root.lookupType(`${SERVICE}.RateLimitResponse`);
const codes = root.lookupEnum(`${SERVICE}.RateLimitResponse.Code`).values;
const units = root.lookupEnum(`${SERVICE}.RateLimitResponse.RateLimit.Unit`).values;
// protobufjs would write its code at the first call, for a third of the 20 ms after which Envoy gives up by default.
for (const type of [requestType, responseType]) setUp(type);
/** Names by numbers. */
const overrideUnits = root.lookupEnum('envoy.type.v3.RateLimitUnit').valuesById;

/** A request as protobufjs decodes it: enums are numbers. */
type Decoded = Omit<RateLimitRequest, 'descriptors'> & {
  readonly descriptors: readonly (Omit<
    RateLimitRequest['descriptors'][number],
    'limit' | 'hits_addend'
  > & {
    /** Without a value, which is 0, it has an object that stands for 64 bits. */
    readonly hits_addend: { readonly value: unknown } | null;
    readonly limit: { readonly requests_per_unit: number; readonly unit: number } | null;
  })[];
};

/** Decodes a request. protobufjs writes the code for that itself, from `proto/`. @throws UnreadableMessage */
export function decodeRequest(bytes: Buffer): RateLimitRequest {
  let decoded: Decoded;
  try {
    decoded = requestType.decode(new StrictReader(bytes)) as unknown as Decoded;
  } catch (error) {
    if (error instanceof UnreadableMessage) throw error;
    throw new UnreadableMessage('be a RateLimitRequest');
  }
  const { domain, descriptors, hits_addend } = decoded;
  return {
    domain,
    hits_addend,
    descriptors: descriptors.map(({ entries, limit, hits_addend, is_negative_hits }) => ({
      entries,
      limit: limit && {
        requests_per_unit: limit.requests_per_unit,
        unit: (overrideUnits[limit.unit] ?? 'UNKNOWN') as Unit,
      },
      hits_addend: hits_addend && { value: Number(hits_addend.value) },
      is_negative_hits,
    })),
  };
}

export function encodeReply(reply: RateLimitResponse): Buffer {
  const message = responseType.encode(numbered(reply)).finish();
  const frame = Buffer.allocUnsafe(FRAME_HEAD_BYTES + message.length);
  frame[0] = 0;
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, FRAME_HEAD_BYTES);
  return frame;
}

/** A reply with the numbers of its enums. */
function numbered({ overall_code, statuses, response_headers_to_add }: RateLimitResponse): object {
  return {
    overall_code: codes[overall_code],
    statuses: statuses.map(
      ({ code, current_limit: limit, limit_remaining, duration_until_reset }) => ({
        code: codes[code],
        current_limit: limit && {
          requests_per_unit: limit.requests_per_unit,
          unit: units[limit.unit],
          name: limit.name,
        },
        limit_remaining,
        duration_until_reset,
      }),
    ),
    response_headers_to_add,
  };
}

/** Makes protobufjs write the code for a message, and for all messages in it. */
function setUp(type: protobuf.Type): void {
  type.setup();
  for (const { resolvedType } of type.fieldsArray) {
    if (resolvedType instanceof protobuf.Type) setUp(resolvedType);
  }
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
