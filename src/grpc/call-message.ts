import { isUtf8 } from 'node:buffer';

import protobuf from 'protobufjs';

import type { RateLimitRequest } from './messages.js';

/** Replaces a text that is not UTF-8: half a surrogate pair, which UTF-8 can't encode. */
export const NOT_UTF8 = '\ud800';
/** Decoding replaces bytes that are not UTF-8 with this character. A valid text may also contain it. */
const REPLACEMENT = '\ufffd';
/** More fields than 100 descriptors of 30 entries have. Without a bound, a message of 256 KiB takes 5 MB and 0.4 s. */
const MAX_FIELDS = 10_000;

type Decode = (bytes: Buffer) => unknown;

/** A message that is not a request. Its text is the end of a sentence. */
export class UnreadableMessage extends Error {}

/** The message of a call as it arrived. It is decoded when its slice begins, and not kept by a call that waits. */
export class CallMessage {
  #bytes: Buffer;

  constructor(
    bytes: Buffer,
    private readonly decode: Decode,
  ) {
    this.#bytes = bytes;
  }

  get length(): number {
    return this.#bytes.length;
  }

  /**
   * Decodes the message, and drops its bytes.
   * @throws UnreadableMessage
   */
  take(): RateLimitRequest {
    const bytes = this.#bytes;
    this.#bytes = Buffer.of();
    try {
      // protobufjs also accepts its own readers instead of bytes; grpc-js's types don't show that.
      return this.decode(new StrictReader(bytes) as unknown as Buffer) as RateLimitRequest;
    } catch (error) {
      if (error instanceof UnreadableMessage) throw error;
      throw new UnreadableMessage('be a RateLimitRequest');
    }
  }
}

/**
 * Bounds the number of fields, and marks texts that are not UTF-8, which would share a key. protobufjs does neither.
 */
class StrictReader extends protobuf.BufferReader {
  /** Each field has a tag, and a length or a value. */
  #left = 2 * MAX_FIELDS;

  override uint32(): number {
    this.#left -= 1;
    if (this.#left < 0) throw new UnreadableMessage(`have at most ${MAX_FIELDS} fields`);
    return super.uint32();
  }

  override string(): string {
    const bytes = this.bytes() as Buffer;
    const text = bytes.toString();
    return text.includes(REPLACEMENT) && !isUtf8(bytes) ? NOT_UTF8 : text;
  }
}
