import type { OutgoingHttpHeaders, ServerHttp2Stream } from 'node:http2';

import { status } from '@grpc/grpc-js';

import type { Clock } from '../common/clock.js';

/** Why something was ended before its client did its part. */
export type EndReason = 'too_many' | 'too_late';

/** Something that may be awaited, in one place at a time. */
export interface AwaitedItem {
  /** When it was added. */
  since: number;
  /** What it takes; see {@link Awaited.grow}. */
  bytes: number;
}

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
export class Awaited<T extends AwaitedItem> {
  /** In the order in which they were added. */
  readonly #items = new Set<T>();
  #bytes = 0;
  #cancelTimer: (() => void) | undefined;

  constructor(private readonly options: AwaitedOptions<T>) {}

  add(what: T): void {
    const { max, millis, clock } = this.options;
    if (this.#items.size >= max) this.#endFirst('too_many');
    this.#items.add(what);
    what.since = clock.now();
    what.bytes = 0;
    if (!this.#cancelTimer) this.#look(millis);
  }

  /** Adds bytes to what it takes. */
  grow(what: T, bytes: number): void {
    if (!this.#items.has(what)) return;
    what.bytes += bytes;
    this.#bytes += bytes;
    while (this.#bytes > (this.options.maxBytes ?? Infinity)) this.#endFirst('too_many');
  }

  /** Called when its client has done its part, or has disconnected. */
  delete(what: T): void {
    if (this.#items.delete(what)) this.#bytes -= what.bytes;
  }

  close(): void {
    this.#cancelTimer?.();
    this.#items.clear();
  }

  /** One timer is enough for all, since the first one added is the first one due. */
  #look(afterMillis: number): void {
    const { millis, clock } = this.options;
    this.#cancelTimer = clock.after(afterMillis, () => {
      this.#cancelTimer = undefined;
      for (const { since } of this.#items) {
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
    const [first] = this.#items;
    if (first === undefined) return;
    this.delete(first);
    this.options.end(first, reason);
  }
}

/** The statuses of calls that fail, but not since their client has sent something wrong. */
const NO_REJECTIONS: readonly unknown[] = [status.UNAVAILABLE, status.DEADLINE_EXCEEDED];

/** The connection of streams, which is told how they end. */
export interface StreamConnection {
  /** The streams of all connections whose requests have not arrived in full. */
  readonly coming: Awaited<AwaitedStream>;
  /** The streams of all connections whose answers have not been read. */
  readonly answered: Awaited<AwaitedStream>;
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
 * A stream whose client is awaited: first until its request has arrived in full, and then until it has read the answer. The code
 * that serves it tells what happens: each listener more costs a call time. For a stream that is served elsewhere, `watchAnswer` and
 * `watchRequest` add listeners.
 */
export class AwaitedStream implements AwaitedItem {
  since = 0;
  bytes = 0;
  #isAnswered = false;

  /** @param hasEnd whether its answer ends */
  constructor(
    readonly stream: ServerHttp2Stream,
    private readonly hasEnd: boolean,
    private readonly connection: StreamConnection,
  ) {
    connection.coming.add(this);
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

  /** A piece of its request has arrived. */
  protected grown({ length }: Buffer): void {
    this.connection.coming.grow(this, length);
  }

  /** Its request has arrived in full. */
  protected ended(): void {
    this.connection.coming.delete(this);
    if (this.stream.headersSent && this.hasEnd) this.connection.answered.add(this);
  }

  /** It is a call that was accepted. */
  accepted(): void {
    this.connection.onAccepted();
  }

  /** Its answer begins. */
  protected answers(headers: OutgoingHttpHeaders, endsStream: boolean): void {
    const { stream, connection } = this;
    this.#answer();
    if (endsStream && !NO_REJECTIONS.includes(headers['grpc-status'])) connection.onRejected();
    if (stream.closed) return;
    if (stream.readableEnded) {
      if (this.hasEnd) connection.answered.add(this);
    } else if (endsStream) {
      closeAnswered(stream);
    }
  }

  protected closed(): void {
    const { stream, connection } = this;
    connection.coming.delete(this);
    connection.answered.delete(this);
    this.#answer();
    if (stream.aborted && !stream.headersSent) connection.onReset(stream);
  }

  #answer(): void {
    if (this.#isAnswered) return;
    this.#isAnswered = true;
    this.connection.onOver();
  }
}
