import {
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import { promisify } from 'node:util';
import { gunzip, inflate } from 'node:zlib';

import { status } from '@grpc/grpc-js';

import { CallerPresence } from '../limiter/request.js';
import {
  type ConnectedRequest,
  correlationIdOf,
  type RequestContext,
} from '../service/request-context.js';
import { type CallFailure, RequestFrames } from './message-codec.js';
import { AwaitedStream, type OpenConnection } from './stream-bounds.js';

/** Of grpc-timeout: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md */
const UNIT_MILLIS: Readonly<Record<string, number>> = {
  ...{ H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 0.001, n: 0.000_001 },
};
/** `setTimeout` takes no more. */
const LONGEST_TIMER_MILLIS = 2 ** 31 - 1;
const DECOMPRESS = new Map([
  ['gzip', promisify(gunzip)],
  ['deflate', promisify(inflate)],
]);
const CONTENT = { ':status': 200, 'content-type': 'application/grpc+proto' };
const ACCEPTED_ENCODINGS = { ...CONTENT, 'grpc-accept-encoding': 'identity,deflate,gzip' };
/** Without a date, which no client of gRPC reads: it would cost a call a tenth of its HTTP/2. */
const WITH_TRAILERS = { waitForTrailers: true, sendDate: false };
const OK = { 'grpc-status': status.OK };

/** The time that an answer needs, as a part of the time until Envoy gives up, and at least. */
const ANSWER_PART = 0.1;
const ANSWER_MILLIS = 5;

/**
 * A gateway's call, with one message each way, on its HTTP/2 stream: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md.
 * grpc-js would take three times the processor's time.
 */
export class GatewayCall extends AwaitedStream implements ConnectedRequest {
  readonly startedAt = performance.now();
  caller: RequestContext['caller'];
  span: RequestContext['span'];
  /** The keys that it asks for, as far as they are known. */
  keys: readonly string[] | undefined;
  /** When its client gives up, in milliseconds since 1970; infinite if it does not. */
  readonly #deadline: number = Infinity;
  #correlationId: string | undefined;
  #isOver = false;
  #timer: NodeJS.Timeout | undefined;
  #frames: RequestFrames | undefined;
  #onMessage: ((bytes: Buffer) => void) | undefined;
  /** The presences of its checks that may wait. */
  #waiting: Set<CallerPresence> | undefined;
  #waitsNoMore = false;

  constructor(
    stream: ServerHttp2Stream,
    readonly headers: IncomingHttpHeaders & RequestContext['headers'],
    connection: OpenConnection,
  ) {
    super(stream, true, connection);
    const timeout = headers['grpc-timeout'];
    if (timeout !== undefined) {
      const millis = millisOf(String(timeout));
      this.#deadline = Date.now() + millis;
      if (millis <= LONGEST_TIMER_MILLIS) this.#timer = setTimeout(endLate, millis, this);
    }
    stream.on('close', this.#onClose);
  }

  /** Most calls are not logged, and need none. */
  get correlationId(): string {
    return (this.#correlationId ??= correlationIdOf(this.headers));
  }

  /** The owner of the share that it takes from: its caller, or its connection if there are no tokens. */
  get owner(): string {
    if (this.caller) return this.caller.name;
    const { remoteAddress, remotePort } = this.stream.session?.socket ?? {};
    return remoteAddress === undefined ? 'unknown' : `${remoteAddress}:${remotePort}`;
  }

  /** Whether it needs no answer any more. */
  get isCancelled(): boolean {
    // A stream may be destroyed for a while before it is closed.
    return this.#isOver || this.stream.destroyed || this.stream.closed;
  }

  /**
   * How long its checks may wait. The gateway has to get a denial before it gives up: after that it may let the request
   * pass. The checks of a gateway that never gives up may wait without end.
   */
  get millisToWait(): number {
    const left = this.#deadline - Date.now();
    return Math.min(left - ANSWER_MILLIS, left * (1 - ANSWER_PART));
  }

  /** Rejects a request that is not one of gRPC. @returns whether it is one */
  isGrpc(): boolean {
    const isGrpc = this.headers['content-type']?.startsWith('application/grpc') ?? false;
    if (!isGrpc) {
      this.#respondAlone({ ':status': constants.HTTP_STATUS_UNSUPPORTED_MEDIA_TYPE });
    }
    return isGrpc;
  }

  /**
   * Reads its message, and calls `onMessage`. A call without a readable message, or with two, fails.
   * @param maxBytes of the message
   */
  read(maxBytes: number, onMessage: (bytes: Buffer) => void): void {
    if (Number.isNaN(this.#deadline)) {
      const details = `Invalid grpc-timeout value "${String(this.headers['grpc-timeout'])}"`;
      this.fail({ code: status.INTERNAL, details });
      return;
    }
    this.#frames = new RequestFrames(maxBytes);
    this.#onMessage = onMessage;
    this.stream.on('end', this.#onEnd).on('data', this.#onData);
  }

  /** Runs `work` with a presence that ends when the gateway gives up, or by `withdrawWaiting`. */
  async whilePresent<T>(work: (client: CallerPresence) => Promise<T>): Promise<T> {
    const client = new CallerPresence();
    if (this.#waitsNoMore || this.isCancelled) client.disconnect();
    const waiting = (this.#waiting ??= new Set());
    waiting.add(client);
    try {
      return await work(client);
    } finally {
      waiting.delete(client);
    }
  }

  /** Withdraws the checks that wait, and lets no check wait from now on. */
  withdrawWaiting(): void {
    this.#waitsNoMore = true;
    if (this.#waiting) for (const client of [...this.#waiting]) client.disconnect();
  }

  /** @param frame a message in its frame */
  reply(frame: Buffer): void {
    if (this.isCancelled) return;
    const { stream, headers } = this;
    // Few clients compress, and say so.
    const reply = headers['grpc-accept-encoding'] === undefined ? CONTENT : ACCEPTED_ENCODINGS;
    stream.respond(reply, WITH_TRAILERS);
    this.accepted();
    this.answers(reply, false);
    stream.on('wantTrailers', sendTrailers);
    stream.end(frame);
    this.#end();
  }

  fail({ code, details }: CallFailure): void {
    if (this.isCancelled) return;
    this.#respondAlone({
      ...CONTENT,
      'grpc-status': code,
      'grpc-message': encodeURI(details),
    });
  }

  #respondAlone(headers: OutgoingHttpHeaders): void {
    this.stream.respond(headers, { endStream: true });
    this.answers(headers, true);
    this.#end();
  }

  readonly #onData = (piece: Buffer): void => {
    this.grown(piece);
    if (this.isCancelled) return;
    const failure = this.#frames?.add(piece);
    if (failure) this.fail(failure);
  };

  readonly #onEnd = (): void => {
    this.ended();
    if (this.isCancelled) return;
    const [frames, onMessage] = [this.#frames, this.#onMessage];
    if (!frames || !onMessage) return;
    const message = frames.end();
    if (!message) {
      this.fail({ code: status.UNIMPLEMENTED, details: 'a call has one message' });
    } else if (message.isCompressed) {
      void this.#decompress(message.bytes, frames.maxBytes, onMessage);
    } else {
      onMessage(message.bytes);
    }
  };

  async #decompress(
    bytes: Buffer,
    maxBytes: number,
    onMessage: (bytes: Buffer) => void,
  ): Promise<void> {
    const encoding = String(this.headers['grpc-encoding'] ?? 'identity');
    const decompress = DECOMPRESS.get(encoding);
    if (!decompress) {
      const details = `messages can't be compressed with ${encoding}`;
      this.fail({ code: status.UNIMPLEMENTED, details });
      return;
    }
    let message: Buffer;
    try {
      message = await decompress(bytes, { maxOutputLength: maxBytes });
    } catch (error) {
      const isTooLong = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
      const code = isTooLong ? status.RESOURCE_EXHAUSTED : status.INTERNAL;
      const details = isTooLong
        ? `the message has more than ${maxBytes} bytes`
        : `the message is not ${encoding}`;
      this.fail({ code, details });
      return;
    }
    if (!this.isCancelled) onMessage(message);
  }

  readonly #onClose = (): void => {
    this.closed();
    this.#end();
  };

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.withdrawWaiting();
  }
}

function endLate(call: GatewayCall): void {
  call.fail({ code: status.DEADLINE_EXCEEDED, details: 'Deadline exceeded' });
}

function sendTrailers(this: ServerHttp2Stream): void {
  this.sendTrailers(OK);
}

/** @returns NaN if the text is no timeout */
function millisOf(timeout: string): number {
  const [, count, unit = ''] = /^(\d{1,8})([HMSmun])$/.exec(timeout) ?? [];
  return Math.floor(Number(count ?? NaN) * (UNIT_MILLIS[unit] ?? NaN));
}
