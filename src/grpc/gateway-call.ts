import { CallerPresence } from '../limiter/caller-presence.js';
import {
  type ConnectedRequest,
  correlationIdOf,
  type RequestContext,
} from '../service/request-context.js';
import type { CallFailure } from './error-statuses.js';
import type { UnaryCall } from './unary-call.js';

/** The time that an answer needs, as a part of the time until Envoy gives up, and at least. */
const ANSWER_PART = 0.1;
const ANSWER_MILLIS = 5;

/** A gateway's call, as the rest of the service knows it. */
export class GatewayCall implements ConnectedRequest {
  readonly startedAt = performance.now();
  readonly headers: RequestContext['headers'];
  caller: RequestContext['caller'];
  span: RequestContext['span'];
  /** The keys that it asks for, as far as they are known, for the log. */
  keys: readonly string[] | undefined;
  #correlationId: string | undefined;
  /** The presences of its checks that may wait. */
  #waiting: Set<CallerPresence> | undefined;
  #waitsNoMore = false;

  constructor(private readonly call: UnaryCall) {
    this.headers = call.headers;
    call.onOver = () => {
      this.withdrawWaiting();
    };
  }

  /** Most calls are not logged, and need none. */
  get correlationId(): string {
    return (this.#correlationId ??= correlationIdOf(this.headers));
  }

  /** The owner of the share that it takes from: its caller, or its connection if there are no tokens. */
  get owner(): string {
    return this.caller?.name ?? this.call.peer;
  }

  /** Whether the gateway has given up. */
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
