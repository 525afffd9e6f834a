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
import {
  Awaited,
  type AwaitedItem,
  AwaitedStream,
  closeAnswered,
  type EndReason,
  type StreamConnection,
} from './awaited-stream.js';
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
  /** The path of the calls, the only requests that need a token. */
  readonly callPath: string;
  /** The path of streams without end. */
  readonly watchPath: string;
  /** The most requests that may wait for their turn. All of them may be answered at once. */
  readonly maxWaiters: number;
  readonly timeouts: Pick<Timeouts, 'headMillis' | 'requestMillis'>;
  readonly clock: Clock;
  /** Serves a stream of a call as an awaited one. */
  readonly serveCall: (
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    connection: StreamConnection,
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

/** What the connections of a port share. */
interface Port extends Pick<StreamBoundsOptions, 'onConnectionDropped'> {
  readonly coming: Awaited<AwaitedStream>;
  readonly answered: Awaited<AwaitedStream>;
  readonly untrusted: UntrustedConnections;
  readonly resets: ResetBounds;
  /** The streams that were reset here, and not by their clients. */
  readonly resetHere: WeakSet<ServerHttp2Stream>;
}

class OpenConnection implements StreamConnection, AwaitedItem {
  since = 0;
  bytes = 0;
  readonly coming: Awaited<AwaitedStream>;
  readonly answered: Awaited<AwaitedStream>;
  /** Whether it is about to be closed. */
  #isEnding = false;
  /** Its streams that may still get an answer. */
  #open = 0;

  readonly #counted: CountedConnection;

  constructor(
    readonly session: Http2Session,
    readonly judged: JudgedConnection,
    private readonly port: Port,
  ) {
    this.coming = port.coming;
    this.answered = port.answered;
    this.#counted = port.resets.connection(session.socket.remoteAddress ?? '');
  }

  onOpened(): void {
    this.#open += 1;
  }

  onOver(): void {
    this.#open -= 1;
  }

  onAccepted(): void {
    this.port.untrusted.accept(this.judged);
  }

  /** Calls that wait for their decisions may still be accepted. */
  onRejected(): void {
    this.port.untrusted.reject(this.judged);
    if (this.judged.isUnwanted && this.#open === 0) this.#end('too_many_rejected');
  }

  onReset(stream: ServerHttp2Stream): void {
    const { resets, resetHere } = this.port;
    if (this.#isEnding || resetHere.has(stream) || resets.allows(this.#counted)) return;
    this.#end('too_many_resets');
  }

  #end(reason: DropReason): void {
    const { session } = this;
    if (this.#isEnding || session.destroyed) return;
    this.#isEnding = true;
    this.port.onConnectionDropped(reason);
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

/**
 * Bounds what clients take of a gRPC port while the server waits for them: connections that have not begun, requests
 * that have not arrived in full, answers that are not read, and streams that need no token.
 */
export class StreamBounds {
  readonly #beginning: Awaited<OpenConnection>;
  readonly #others = new WeakMap<Http2Session, number>();
  readonly #ended: EndedSessions;
  readonly #port: Port;
  /** The socket whose session begins. */
  #socket: Socket | undefined;
  /** The connection of the stream that is being taken. A stream that is over has no session. */
  #connection: OpenConnection | undefined;

  constructor(private readonly options: StreamBoundsOptions) {
    const { clock, maxWaiters, timeouts } = options;
    this.#beginning = new Awaited({
      max: MAX_BEGINNING,
      millis: timeouts.headMillis,
      clock,
      end: ({ session }) => session.destroy(),
    });
    const streams = { millis: timeouts.requestMillis, clock, end: this.#drop };
    this.#ended = new EndedSessions(clock);
    this.#port = {
      coming: new Awaited({ ...streams, max: MAX_COMING, maxBytes: MAX_COMING_BYTES }),
      answered: new Awaited({ ...streams, max: maxWaiters + MAX_COMING }),
      untrusted: new UntrustedConnections(),
      resets: new ResetBounds(clock),
      resetHere: new WeakSet(),
      onConnectionDropped: options.onConnectionDropped,
    };
  }

  /**
   * Begins a connection by `serve`, which makes the server emit its session. A connection of an address that resets too many
   * streams is dropped.
   */
  begin(socket: Socket, serve: () => void): void {
    if (this.#port.resets.admits(socket.remoteAddress ?? '')) {
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
      const judged = this.#port.untrusted.begin(socket);
      const connection = new OpenConnection(session, judged, this.#port);
      const hasBegun = (): void => this.#beginning.delete(connection);
      this.#beginning.add(connection);
      session.once('localSettings', hasBegun).once('close', hasBegun);
      session.prependListener('stream', () => {
        this.#connection = connection;
      });
    });
    const listeners = server.listeners('stream') as OnStream[];
    server.removeAllListeners('stream');
    const { callPath, watchPath, serveCall } = this.options;
    server.on('stream', (...args: Parameters<OnStream>) => {
      const [stream, headers, , rawHeaders] = args;
      const connection = this.#take(stream, headers, rawHeaders);
      if (!connection) return;
      if (headers[':path'] === callPath) {
        serveCall(stream, headers, connection);
        return;
      }
      const awaited = new AwaitedStream(stream, headers[':path'] !== watchPath, connection);
      awaited.watchAnswer();
      for (const listener of listeners) listener.apply(server, args);
      // Only now: a listener makes the data flow.
      awaited.watchRequest();
    });
  }

  close(): void {
    const { coming, answered } = this.#port;
    for (const one of [this.#beginning, coming, answered, this.#ended]) one.close();
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
    this.#port.untrusted.take(connection.judged);
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
    if (headers[':path'] !== this.options.callPath && !this.#admitOther(stream)) {
      this.#reset(stream, 'too_many', constants.NGHTTP2_REFUSED_STREAM);
      connection.onRejected();
      return undefined;
    }
    connection.onOpened();
    return connection;
  }

  /** @returns false if its connection has too many of them */
  #admitOther(stream: ServerHttp2Stream): boolean {
    const { session } = stream;
    if (!session) return false;
    const open = this.#others.get(session) ?? 0;
    if (open >= MAX_OTHERS_PER_CONNECTION) return false;
    this.#others.set(session, open + 1);
    stream.once('close', () => this.#others.set(session, (this.#others.get(session) ?? 1) - 1));
    return true;
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
    this.#port.resetHere.add(stream);
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
