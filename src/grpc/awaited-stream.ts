import type { ServerHttp2Stream } from 'node:http2';

import type { Awaited } from './awaited.js';

/**
 * Closes a stream whose answer has just ended: the rest of its request is not needed
 * (https://www.rfc-editor.org/rfc/rfc9113#section-8.1). Node 22 and 26 would send a reset instead of the answer if the stream
 * were closed in the same tick.
 */
export function closeAnswered(stream: ServerHttp2Stream): void {
  setImmediate(() => {
    stream.close();
  });
}

/**
 * A stream whose client is awaited: first until its request has arrived in full, and then until it has read the answer. It is
 * told what happens to the stream by the code that serves it: each listener more costs a call time. For a stream that is served
 * elsewhere, `watchAnswer` and `watchRequest` add listeners.
 */
export class AwaitedStream {
  /** @param hasEnd whether its answer ends @param onReset called if its client resets it before its answer */
  constructor(
    private readonly stream: ServerHttp2Stream,
    private readonly hasEnd: boolean,
    private readonly coming: Awaited<ServerHttp2Stream>,
    private readonly answered: Awaited<ServerHttp2Stream>,
    private readonly onReset: () => void,
  ) {
    coming.add(stream);
  }

  /** A piece of its request has arrived. */
  grown({ length }: Buffer): void {
    this.coming.grow(this.stream, length);
  }

  /** Its request has arrived in full. */
  ended(): void {
    this.coming.delete(this.stream);
    if (this.stream.headersSent && this.hasEnd) this.answered.add(this.stream);
  }

  /** Its answer begins. */
  answers(endsStream: boolean): void {
    const { stream } = this;
    if (stream.closed) return;
    if (stream.readableEnded) {
      if (this.hasEnd) this.answered.add(stream);
    } else if (endsStream) {
      closeAnswered(stream);
    }
  }

  closed(): void {
    const { stream } = this;
    this.coming.delete(stream);
    this.answered.delete(stream);
    if (stream.aborted && !stream.headersSent) this.onReset();
  }

  /** Notes when its answer begins, for which Node has no event. */
  watchAnswer(): void {
    const { stream } = this;
    const respond = stream.respond.bind(stream);
    stream.respond = (headers, options) => {
      respond(headers, options);
      this.answers(options?.endStream ?? false);
    };
    stream.once('close', () => {
      this.closed();
    });
  }

  /** Notes how its request arrives. It makes the data flow. */
  watchRequest(): void {
    const { stream } = this;
    if (stream.closed) return;
    stream.on('data', (piece: Buffer) => {
      this.grown(piece);
    });
    stream.once('end', () => {
      this.ended();
    });
  }
}
