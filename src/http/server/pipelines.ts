import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

import type { ConnectionBounds } from '../../net/connection-bounds.js';
import { discardBody, keepsBody } from '../intake/intake.js';
import { firstPendingResponse, pauseReading, resumeReading } from '../intake/connection-state.js';

/**
 * How many requests a connection may defer while it is read. Reading goes on that long since only a read shows that a
 * client disconnects. Node reads 64 KB at a time, so that the requests in 64 KB more may be deferred.
 */
export const MAX_DEFERRED_WHILE_READ = 1000;
/** How many requests all connections together may defer; about 6 KB each. */
export const MAX_DEFERRED_IN_ALL = 10_000;

type PipelineBounds = Pick<ConnectionBounds, 'maxInFlight' | 'onDeferred' | 'onDropped'>;

/** The targets of requests with small answers: those about one key. */
const SMALL_ANSWER = /^\/rate\/[^?]/;

/**
 * Serves at most `maxInFlight` requests of a connection at a time. HTTP/1.1 allows a client to send more requests
 * before it gets answers. These are deferred, in their order, until earlier ones are answered. A request whose answer may
 * be large is served alone, when all answers before it are sent. A request without others on its connection costs
 * nothing.
 */
export function boundPipelines(serve: RequestListener, bounds: PipelineBounds): RequestListener {
  const pipelines = new WeakMap<Socket, Pipeline>();
  const port: Port = { ...bounds, serve, deferred: 0 };
  return (request, response) => {
    // Node has given a response its connection if no earlier response needs it.
    if (response.socket !== null) {
      serve(request, response);
      return;
    }
    const { socket } = request;
    let pipeline = pipelines.get(socket);
    if (!pipeline) {
      pipeline = new Pipeline(socket, port);
      pipelines.set(socket, pipeline);
    }
    pipeline.take(request, response);
  };
}

interface Port extends PipelineBounds {
  readonly serve: RequestListener;
  /** The requests that all its connections have deferred. */
  deferred: number;
}

/** The requests of one connection that arrived before earlier ones were answered. */
class Pipeline {
  #deferred: [IncomingMessage, ServerResponse][] = [];
  /** The requests that are served, and those whose answers went out in this tick. */
  #inFlight = 0;
  #answeredThisTick = 0;
  /** Whether the request that is served has to be the only one. */
  #isAlone = false;

  constructor(
    private readonly socket: Socket,
    private readonly port: Port,
  ) {
    socket.once('close', () => this.#dropDeferred());
  }

  take(request: IncomingMessage, response: ServerResponse): void {
    // Node passes on all requests that it has read, also those of a connection that was just cut.
    if (this.socket.destroyed) return;
    if (this.#isEmpty) this.#countFirst();
    response.once('finish', this.#onAnswered);
    if (this.#deferred.length === 0 && this.#mayServe(request)) {
      this.#begin(request, response);
    } else {
      this.#defer(request, response);
    }
  }

  /** Whether everything that was counted or deferred is answered. */
  get #isEmpty(): boolean {
    return this.#deferred.length === 0 && this.#inFlight === this.#answeredThisTick;
  }

  #mayServe(request: IncomingMessage): boolean {
    if (this.#inFlight === 0) return true;
    return !this.#isAlone && !isLarge(request) && this.#inFlight < this.port.maxInFlight;
  }

  #begin(request: IncomingMessage, response: ServerResponse): void {
    this.#inFlight += 1;
    this.#isAlone = isLarge(request);
    this.port.serve(request, response);
  }

  /** The request before the first one of a pipeline had no others beside it when it came, and was not counted. */
  #countFirst(): void {
    this.#inFlight += 1;
    const first = firstPendingResponse(this.socket);
    this.#isAlone = first ? isLarge(first.req) : false;
    first?.once('finish', this.#onAnswered);
  }

  #defer(request: IncomingMessage, response: ServerResponse): void {
    if (this.port.deferred === MAX_DEFERRED_IN_ALL) {
      this.#dropDeferred();
      this.socket.destroy();
      this.port.onDropped('too_many_deferred');
      return;
    }
    this.port.onDeferred();
    const isBodyKept = keepsBody(request);
    // A body that nobody reads would stop the reading of the connection.
    if (!isBodyKept) void discardBody(request);
    this.#deferred.push([request, response]);
    this.port.deferred += 1;
    // Many deferred bodies would take much memory.
    if (isBodyKept || this.#deferred.length === MAX_DEFERRED_WHILE_READ) pauseReading(this.socket);
  }

  /** Serves the next requests in the next tick, so that other connections are served in between. */
  readonly #onAnswered = (): void => {
    if (this.#answeredThisTick === 0) setImmediate(this.#serveNext);
    this.#answeredThisTick += 1;
  };

  readonly #serveNext = (): void => {
    this.#inFlight -= this.#answeredThisTick;
    this.#answeredThisTick = 0;
    // A connection that is ending takes no more answers.
    while (this.socket.writable) {
      const [next] = this.#deferred;
      if (!next || !this.#mayServe(next[0])) break;
      this.#deferred.shift();
      this.port.deferred -= 1;
      this.#begin(...next);
    }
    if (this.#deferred.length === 0) resumeReading(this.socket);
  };

  #dropDeferred(): void {
    this.port.deferred -= this.#deferred.length;
    this.#deferred = [];
  }
}

function isLarge({ url = '' }: IncomingMessage): boolean {
  return !SMALL_ANSWER.test(url);
}
