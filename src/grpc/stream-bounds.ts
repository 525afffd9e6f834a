import {
  constants,
  type Http2Server,
  type Http2Session,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Socket } from 'node:net';

import { status } from '@grpc/grpc-js';

import type { Clock } from '../common/clock.js';
import type { Timeouts } from '../net/connection-bounds.js';
import { type JudgedConnection, UntrustedConnections } from '../net/untrusted-connections.js';
import type { DropReason, StreamDropReason } from '../metrics/prometheus-metrics.js';
import { Awaited, type AwaitedItem, type EndReason } from './awaited.js';
import { WATCH_PATH } from './health.js';
import { CALL_PATH } from './proto.js';
import { type CountedConnection, EndedSessions, ResetBounds } from './session-bounds.js';

/** As counted over HTTP/2, with 32 bytes more for each header. Gateways send about 1 KiB. */
const MAX_HEADER_LIST_BYTES = 8 * 1024;
const HEADER_OVERHEAD = 32;
/** The most connections whose clients have not acknowledged the settings. */
const MAX_BEGINNING = 1000;
/** The most streams whose requests have not arrived in full, and the most bytes of these. */
const MAX_COMING = 2000;
const MAX_COMING_BYTES = 64 * 1024 * 1024;
/** The most streams of a connection for methods other than the calls, such as watching health and reflection. */
const MAX_OTHERS_PER_CONNECTION = 3;

/** The settings that the server announces. They bind a client that has acknowledged them. */
const SETTINGS = {
  // With a table, one byte could repeat a long header.
  headerTableSize: 0,
  maxHeaderListSize: MAX_HEADER_LIST_BYTES,
};

const TOO_LATE: OutgoingHttpHeaders = {
  ':status': 200,
  'content-type': 'application/grpc+proto',
  'grpc-status': status.DEADLINE_EXCEEDED,
  'grpc-message': 'request timed out',
};

export interface StreamBoundsOptions {
  /** The most requests that may wait for their turn. All of them may be answered at once. */
  readonly maxWaiters: number;
  readonly timeouts: Pick<Timeouts, 'headMillis' | 'requestMillis'>;
  readonly clock: Clock;
  /** Serves a stream of a call as an awaited one. */
  readonly serveCall: (
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    connection: OpenConnection,
  ) => void;
  readonly onDropped: (reason: StreamDropReason) => void;
  readonly onConnectionDropped: (reason: DropReason) => void;
}

type OnStream = (
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  flags: number,
  rawHeaders: readonly string[],
) => void;

/** A connection, which is told how its streams end. */
export class OpenConnection implements AwaitedItem {
  since = 0;
  bytes = 0;
  /** Whether it is about to be closed. */
  #isEnding = false;
  /** Its streams that may still get an answer. */
  #open = 0;
  /** Its streams of methods other than the calls. */
  others = 0;
  readonly #counted: CountedConnection;

  constructor(
    readonly session: Http2Session,
    readonly judged: JudgedConnection,
    readonly bounds: StreamBounds,
  ) {
    this.#counted = bounds.resets.connection(session.socket.remoteAddress ?? '');
  }

  onOpened(): void {
    this.#open += 1;
  }

  /** A stream has its answer, or needs none. Called once for each. */
  onOver(): void {
    this.#open -= 1;
  }

  /** A call was accepted, before or with its answer. */
  onAccepted(): void {
    this.bounds.untrusted.accept(this.judged);
  }

  /** A stream was answered with a rejection. Calls that wait for their decisions may still be accepted. */
  onRejected(): void {
    this.bounds.untrusted.reject(this.judged);
    if (this.judged.isUnwanted && this.#open === 0) this.#end('too_many_rejected');
  }

  /** The client has reset a stream before its answer. */
  onReset(stream: ServerHttp2Stream): void {
    const { resets, resetHere } = this.bounds;
    if (this.#isEnding || resetHere.has(stream) || resets.allows(this.#counted)) return;
    this.#end('too_many_resets');
  }

  #end(reason: DropReason): void {
    const { session } = this;
    if (this.#isEnding || session.destroyed) return;
    this.#isEnding = true;
    this.bounds.options.onConnectionDropped(reason);
    // At once, nghttp2 refuses all other streams in the piece of data that it reads, at little cost.
    session.settings({ maxConcurrentStreams: 0 });
    // Not while nghttp2 reads the piece of data: https://github.com/nodejs/node/issues/38964
    setImmediate(() => {
      if (session.destroyed) return;
      session.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM);
      session.destroy();
    });
  }
}

/** The statuses of calls that fail, but not since their client has sent something wrong. */
const NO_REJECTIONS: readonly unknown[] = [status.UNAVAILABLE, status.DEADLINE_EXCEEDED];

/**
 * Closes a stream whose answer has just ended: the rest of its request is not needed
 * (https://www.rfc-editor.org/rfc/rfc9113#section-8.1). Node 22 and 26 would send a reset instead of the answer if the stream
 * were closed in the same tick.
 */
function closeAnswered(stream: ServerHttp2Stream): void {
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
    private readonly connection: OpenConnection,
  ) {
    connection.bounds.coming.add(this);
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
    this.connection.bounds.coming.grow(this, length);
  }

  /** Its request has arrived in full. */
  protected ended(): void {
    this.connection.bounds.coming.delete(this);
    if (this.stream.headersSent && this.hasEnd) this.connection.bounds.answered.add(this);
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
      if (this.hasEnd) connection.bounds.answered.add(this);
    } else if (endsStream) {
      closeAnswered(stream);
    }
  }

  protected closed(): void {
    const { stream, connection } = this;
    connection.bounds.coming.delete(this);
    connection.bounds.answered.delete(this);
    this.#answer();
    if (stream.aborted && !stream.headersSent) connection.onReset(stream);
  }

  #answer(): void {
    if (this.#isAnswered) return;
    this.#isAnswered = true;
    this.connection.onOver();
  }
}

/**
 * Bounds what clients take of a gRPC port while the server waits for them: connections that have not begun, requests
 * that have not arrived in full, answers that are not read, and streams that need no token.
 */
export class StreamBounds {
  readonly coming: Awaited<AwaitedStream>;
  readonly answered: Awaited<AwaitedStream>;
  readonly untrusted = new UntrustedConnections();
  readonly resets: ResetBounds;
  /** The streams that were reset here, and not by their clients. */
  readonly resetHere = new WeakSet<ServerHttp2Stream>();
  readonly #beginning: Awaited<OpenConnection>;
  readonly #ended: EndedSessions;
  /** The socket whose session begins. */
  #socket: Socket | undefined;
  /** The connection of the stream that is being taken. A stream that is over has no session. */
  #connection: OpenConnection | undefined;

  constructor(readonly options: StreamBoundsOptions) {
    const { clock, maxWaiters, timeouts } = options;
    this.#beginning = new Awaited({
      max: MAX_BEGINNING,
      millis: timeouts.headMillis,
      clock,
      end: ({ session }) => session.destroy(),
    });
    const streams = { millis: timeouts.requestMillis, clock, end: this.#drop };
    this.#ended = new EndedSessions(clock);
    this.coming = new Awaited({ ...streams, max: MAX_COMING, maxBytes: MAX_COMING_BYTES });
    this.answered = new Awaited({ ...streams, max: maxWaiters + MAX_COMING });
    this.resets = new ResetBounds(clock);
  }

  /**
   * Begins a connection by `serve`, which makes the server emit its session. A connection of an address that resets too many
   * streams is dropped.
   */
  begin(socket: Socket, serve: () => void): void {
    if (this.resets.admits(socket.remoteAddress ?? '')) {
      this.#socket = socket;
      serve();
    } else {
      this.options.onConnectionDropped('too_many_resets');
      socket.destroy();
    }
  }

  apply(server: Http2Server): void {
    server.updateSettings(SETTINGS);
    server.on('session', (session) => {
      this.#ended.add(session);
      const socket = this.#socket;
      if (!socket) return;
      const judged = this.untrusted.begin(socket);
      const connection = new OpenConnection(session, judged, this);
      const hasBegun = (): void => this.#beginning.delete(connection);
      this.#beginning.add(connection);
      session.once('localSettings', hasBegun).once('close', hasBegun);
      session.prependListener('stream', () => {
        this.#connection = connection;
      });
    });
    const listeners = server.listeners('stream') as OnStream[];
    server.removeAllListeners('stream');
    const { serveCall } = this.options;
    server.on('stream', (...args: Parameters<OnStream>) => {
      const [stream, headers, , rawHeaders] = args;
      const connection = this.#take(stream, headers, rawHeaders);
      if (!connection) return;
      if (headers[':path'] === CALL_PATH) {
        serveCall(stream, headers, connection);
        return;
      }
      const awaited = new AwaitedStream(stream, headers[':path'] !== WATCH_PATH, connection);
      awaited.watchAnswer();
      for (const listener of listeners) listener.apply(server, args);
      // Only now: a listener makes the data flow.
      awaited.watchRequest();
    });
  }

  close(): void {
    for (const one of [this.#beginning, this.coming, this.answered, this.#ended]) one.close();
  }

  /** @returns its connection; undefined if the stream is dropped */
  #take(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    rawHeaders: readonly string[],
  ): OpenConnection | undefined {
    // A dropped stream emits an error.
    stream.on('error', ignore);
    const connection = this.#connection;
    if (!connection) return undefined;
    this.untrusted.take(connection.judged);
    const isOver: boolean = stream.closed;
    if (isOver) {
      // Its client has reset it in the same piece of data.
      connection.onReset(stream);
      return undefined;
    }
    if (sizeOf(rawHeaders) > MAX_HEADER_LIST_BYTES) {
      this.#reset(stream, 'headers_too_large', constants.NGHTTP2_ENHANCE_YOUR_CALM);
      return undefined;
    }
    if (headers[':path'] !== CALL_PATH) {
      if (connection.others >= MAX_OTHERS_PER_CONNECTION) {
        this.#reset(stream, 'too_many', constants.NGHTTP2_REFUSED_STREAM);
        connection.onRejected();
        return undefined;
      }
      connection.others += 1;
      stream.once('close', () => (connection.others -= 1));
    }
    connection.onOpened();
    return connection;
  }

  readonly #drop = ({ stream }: AwaitedStream, reason: EndReason): void => {
    if (stream.headersSent) {
      this.#reset(stream, reason, constants.NGHTTP2_CANCEL);
    } else if (reason === 'too_many') {
      // This code tells the client that the request was not processed.
      this.#reset(stream, reason, constants.NGHTTP2_REFUSED_STREAM);
    } else {
      this.options.onDropped(reason);
      stream.respond(TOO_LATE, { endStream: true });
      closeAnswered(stream);
    }
  };

  #reset(stream: ServerHttp2Stream, reason: StreamDropReason, code: number): void {
    this.options.onDropped(reason);
    this.resetHere.add(stream);
    stream.close(code);
  }
}

function ignore(): void {
  // It is told by `close` as well.
}

function sizeOf(rawHeaders: readonly string[]): number {
  let bytes = (rawHeaders.length / 2) * HEADER_OVERHEAD;
  for (const text of rawHeaders) bytes += text.length;
  return bytes;
}
