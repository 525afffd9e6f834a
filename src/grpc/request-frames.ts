import { status } from '@grpc/grpc-js';

import type { CallFailure } from './error-statuses.js';

/** A message's compressed flag and length: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md */
export const FRAME_HEAD_BYTES = 5;

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
