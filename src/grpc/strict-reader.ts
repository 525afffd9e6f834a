import { isUtf8 } from 'node:buffer';

import protobuf from 'protobufjs';

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
export class StrictReader extends protobuf.BufferReader {
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
