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
import type { AwaitedStream } from './awaited-stream.js';
import { type CallFailure, RequestFrames } from './message-codec.js';

/** Of grpc-timeout: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md */
const UNIT_MILLIS: Readonly<Record<string, number>> = {
  ...{ H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 0.001, n: 0.000_001 },
};
/** `setTimeout` takes no more. */
const LONGEST_TIMER_MILLIS = 2 ** 31 - 1;
const DECOMPRESS = { gzip: promisify(gunzip), deflate: promisify(inflate) };
const CONTENT = { ':status': 200, 'content-type': 'application/grpc+proto' };
const REPLY = { ...CONTENT, 'grpc-accept-encoding': 'identity,deflate,gzip' };
const WITH_TRAILERS = { waitForTrailers: true };
const OK = { 'grpc-status': status.OK };

/**
 * A call with one message each way, on its HTTP/2 stream: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md. grpc-js
 * would take three times the processor's time.
 */
export class UnaryCall {
  /** When its client gives up, in milliseconds since 1970; infinite if it does not. */
  readonly deadline: number = Infinity;
  /** Called once its client has given up, or has its answer. */
  onOver: (() => void) | undefined;
  #isOver = false;
  #timer: NodeJS.Timeout | undefined;
  #frames: RequestFrames | undefined;
  #onMessage: ((bytes: Buffer) => void) | undefined;

  constructor(
    private readonly stream: ServerHttp2Stream,
    readonly headers: IncomingHttpHeaders,
    private readonly awaited: AwaitedStream,
  ) {
    const timeout = headers['grpc-timeout'];
    if (timeout !== undefined) {
      const millis = millisOf(String(timeout));
      this.deadline = Date.now() + millis;
      if (millis <= LONGEST_TIMER_MILLIS) this.#timer = setTimeout(this.#onDeadline, millis);
    }
    stream.on('close', this.#onClose);
  }

  /** Whether it needs no answer any more. */
  get isOver(): boolean {
    // A stream may be destroyed for a while before it is closed.
    return this.#isOver || this.stream.destroyed || this.stream.closed;
  }

  /** The address and the port of its client. */
  get peer(): string {
    const { remoteAddress, remotePort } = this.stream.session?.socket ?? {};
    return remoteAddress === undefined ? 'unknown' : `${remoteAddress}:${remotePort}`;
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
    if (Number.isNaN(this.deadline)) {
      const details = `Invalid grpc-timeout value "${String(this.headers['grpc-timeout'])}"`;
      this.fail({ code: status.INTERNAL, details });
      return;
    }
    this.#frames = new RequestFrames(maxBytes);
    this.#onMessage = onMessage;
    this.stream.on('end', this.#onEnd).on('data', this.#onData);
  }

  /** @param frame a message in its frame */
  reply(frame: Buffer): void {
    if (this.isOver) return;
    const { stream } = this;
    stream.respond(REPLY, WITH_TRAILERS);
    this.awaited.accepted();
    this.awaited.answers(REPLY, false);
    stream.on('wantTrailers', this.#sendTrailers);
    stream.end(frame);
    this.#end();
  }

  fail({ code, details }: CallFailure): void {
    if (this.isOver) return;
    this.#respondAlone({
      ...CONTENT,
      'grpc-status': code,
      'grpc-message': encodeURI(details),
    });
  }

  #respondAlone(headers: OutgoingHttpHeaders): void {
    this.stream.respond(headers, { endStream: true });
    this.awaited.answers(headers, true);
    this.#end();
  }

  readonly #onData = (piece: Buffer): void => {
    this.awaited.grown(piece);
    if (this.isOver) return;
    const failure = this.#frames?.add(piece);
    if (failure) this.fail(failure);
  };

  readonly #onEnd = (): void => {
    this.awaited.ended();
    if (this.isOver) return;
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
    const decompress = Object.hasOwn(DECOMPRESS, encoding)
      ? DECOMPRESS[encoding as keyof typeof DECOMPRESS]
      : undefined;
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
    if (!this.isOver) onMessage(message);
  }

  readonly #sendTrailers = (): void => this.stream.sendTrailers(OK);

  readonly #onDeadline = (): void =>
    this.fail({ code: status.DEADLINE_EXCEEDED, details: 'Deadline exceeded' });

  readonly #onClose = (): void => {
    this.awaited.closed();
    this.#end();
  };

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    this.onOver?.();
  }
}

/** @returns NaN if the text is no timeout */
function millisOf(timeout: string): number {
  const [, count, unit = ''] = /^(\d{1,8})([HMSmun])$/.exec(timeout) ?? [];
  return Math.floor(Number(count ?? NaN) * (UNIT_MILLIS[unit] ?? NaN));
}

/** The time that an answer needs, as a part of the time until Envoy gives up, and at least. */
const ANSWER_PART = 0.1;
const ANSWER_MILLIS = 5;

/** A gateway's call, as the rest of the service knows it. */
export class GatewayCall implements ConnectedRequest {
  readonly startedAt = performance.now();
  readonly headers: RequestContext['headers'];
  caller: RequestContext['caller'];
  span: RequestContext['span'];
  keys: readonly string[] | undefined;
  #correlationId: string | undefined;
  /** The presences of its checks that may wait. */
  #waiting: Set<CallerPresence> | undefined;
  #waitsNoMore = false;

  constructor(private readonly call: UnaryCall) {
    this.headers = call.headers;
    call.onOver = () => this.withdrawWaiting();
  }

  /** Most calls are not logged, and need none. */
  get correlationId(): string {
    return (this.#correlationId ??= correlationIdOf(this.headers));
  }

  /** The owner of the share that it takes from: its caller, or its connection if there are no tokens. */
  get owner(): string {
    return this.caller?.name ?? this.call.peer;
  }

  get isCancelled(): boolean {
    return this.call.isOver;
  }

  /**
   * How long its checks may wait. The gateway has to get a denial before it gives up: after that it may let the request
   * pass. The checks of a gateway that never gives up may wait without end.
   */
  get millisToWait(): number {
    const left = this.call.deadline - Date.now();
    return Math.min(left - ANSWER_MILLIS, left * (1 - ANSWER_PART));
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
    for (const client of [...(this.#waiting ?? [])]) client.disconnect();
  }

  reply(frame: Buffer): void {
    this.call.reply(frame);
  }

  fail(failure: CallFailure): void {
    this.call.fail(failure);
  }
}
