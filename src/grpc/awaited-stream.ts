import type { OutgoingHttpHeaders, ServerHttp2Stream } from 'node:http2';

import { status } from '@grpc/grpc-js';

import type { Clock } from '../common/clock.js';

/** Why something was ended before its client did its part. */
export type EndReason = 'too_many' | 'too_late';

interface AwaitedOptions<T> {
  readonly max: number;
  /** The bound of the bytes of all together; see {@link Awaited.grow}. */
  readonly maxBytes?: number;
  readonly millis: number;
  readonly clock: Clock;
  readonly end: (what: T, reason: EndReason) => void;
}

/**
 * Things that wait for their clients: at most `max` at a time, each for `millis`. Beyond a bound, the one that has
 * waited longest is ended. That is never one whose client does its part at once, so slow clients can't lock other
 * clients out.
 */
export class Awaited<T> {
  /** In the order in which they were added. */
  readonly #entries = new Map<T, { readonly since: number; bytes: number }>();
  #bytes = 0;
  #cancelTimer: (() => void) | undefined;

  constructor(private readonly options: AwaitedOptions<T>) {}

  add(what: T): void {
    const { max, millis, clock } = this.options;
    if (this.#entries.size >= max) this.#endFirst('too_many');
    this.#entries.set(what, { since: clock.now(), bytes: 0 });
    if (!this.#cancelTimer) this.#look(millis);
  }

  /** Adds bytes to what it takes. */
  grow(what: T, bytes: number): void {
    const entry = this.#entries.get(what);
    if (!entry) return;
    entry.bytes += bytes;
    this.#bytes += bytes;
    while (this.#bytes > (this.options.maxBytes ?? Infinity)) this.#endFirst('too_many');
  }

  /** Called when its client has done its part, or has disconnected. */
  delete(what: T): void {
    const entry = this.#entries.get(what);
    if (!entry) return;
    this.#bytes -= entry.bytes;
    this.#entries.delete(what);
  }

  close(): void {
    this.#cancelTimer?.();
    this.#entries.clear();
  }

  /** One timer is enough for all, since the first one added is the first one due. */
  #look(afterMillis: number): void {
    const { millis, clock } = this.options;
    this.#cancelTimer = clock.after(afterMillis, () => {
      this.#cancelTimer = undefined;
      for (const { since } of this.#entries.values()) {
        const left = since + millis - clock.now();
        if (left > 0) {
          this.#look(left);
          return;
        }
        this.#endFirst('too_late');
      }
    });
  }

  #endFirst(reason: EndReason): void {
    const [first] = this.#entries.keys();
    if (first === undefined) return;
    this.delete(first);
    this.options.end(first, reason);
  }
}

/** The statuses of calls that fail, but not since their client has sent something wrong. */
const NO_REJECTIONS: readonly unknown[] = [status.UNAVAILABLE, status.DEADLINE_EXCEEDED];

/** What is told how its streams end. */
export interface StreamsOwner {
  /** A call was accepted, before or with its answer. */
  onAccepted(): void;
  /** A stream was answered with a rejection. */
  onRejected(): void;
  /** The client has reset a stream before its answer. */
  onReset(stream: ServerHttp2Stream): void;
  /** A stream has its answer, or needs none. Called once for each. */
  onOver(): void;
}

/**
 * Closes a stream whose answer has just ended: the rest of its request is not needed
 * (https://www.rfc-editor.org/rfc/rfc9113#section-8.1). Node 22 and 26 would send a reset instead of the answer if the stream
 * were closed in the same tick.
 */
export function closeAnswered(stream: ServerHttp2Stream): void {
  setImmediate(() => stream.close());
}

/**
 * A stream whose client is awaited: first until its request has arrived in full, and then until it has read the answer. It is
 * told what happens to the stream by the code that serves it: each listener more costs a call time. For a stream that is served
 * elsewhere, `watchAnswer` and `watchRequest` add listeners.
 */
export class AwaitedStream {
  #isOver = false;

  /** @param hasEnd whether its answer ends */
  constructor(
    private readonly stream: ServerHttp2Stream,
    private readonly hasEnd: boolean,
    private readonly coming: Awaited<ServerHttp2Stream>,
    private readonly answered: Awaited<ServerHttp2Stream>,
    private readonly owner: StreamsOwner,
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

  /** It is a call that was accepted. */
  accepted(): void {
    this.owner.onAccepted();
  }

  /** Its answer begins. */
  answers(headers: OutgoingHttpHeaders, endsStream: boolean): void {
    const { stream } = this;
    this.#end();
    if (endsStream && !NO_REJECTIONS.includes(headers['grpc-status'])) this.owner.onRejected();
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
    this.#end();
    if (stream.aborted && !stream.headersSent) this.owner.onReset(stream);
  }

  /** Notes when its answer begins, for which Node has no event. */
  watchAnswer(): void {
    const { stream } = this;
    const respond = stream.respond.bind(stream);
    stream.respond = (headers, options) => {
      respond(headers, options);
      this.answers(headers ?? {}, options?.endStream ?? false);
    };
    stream.once('close', () => this.closed());
  }

  /** Notes how its request arrives. It makes the data flow. */
  watchRequest(): void {
    const { stream } = this;
    if (stream.closed) return;
    stream.on('data', (piece: Buffer) => this.grown(piece));
    stream.once('end', () => this.ended());
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.owner.onOver();
  }
}
