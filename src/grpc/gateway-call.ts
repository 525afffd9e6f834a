import type { ServerUnaryCall } from '@grpc/grpc-js';

import type { ConnectedRequest, RequestContext } from '../service/request-context.js';
import { CallerPresence } from '../limiter/caller-presence.js';
import type { CallMessage } from './call-message.js';
import type { RateLimitResponse } from './messages.js';

type RateLimitCall = ServerUnaryCall<CallMessage, RateLimitResponse>;

/** The part of the time until Envoy gives up that an answer needs, and the least of it. */
const ANSWER_PART = 0.1;
const ANSWER_MILLIS = 5;

/** A gateway's call, as those who decide see it. */
export class GatewayCall implements ConnectedRequest {
  readonly correlationId: string;
  readonly startedAt: number;
  readonly headers: RequestContext['headers'];
  readonly caller: RequestContext['caller'];
  span: RequestContext['span'];
  /** Those that it asks for, as far as they are known, for the log. */
  keys: readonly string[] | undefined;
  /** Of its checks that may wait. */
  readonly #waiting = new Set<CallerPresence>();
  #isOver: boolean;

  /** @param head has entered */
  constructor(
    private readonly call: RateLimitCall,
    head: RequestContext,
  ) {
    this.correlationId = head.correlationId;
    this.startedAt = head.startedAt;
    this.headers = head.headers;
    this.caller = head.caller;
    this.#isOver = call.cancelled;
    call.on('cancelled', () => {
      this.withdrawWaiting();
    });
  }

  /** Of whose share it takes: its caller's, or its connection's where there are no tokens. */
  get owner(): string {
    return this.caller?.name ?? this.call.getPeer();
  }

  /** Whether the gateway has given up. */
  get isCancelled(): boolean {
    return this.call.cancelled;
  }

  /**
   * How long its checks may wait, so that the gateway hears of a refusal before it gives up; it may let pass then. A
   * gateway that never gives up has them wait without end.
   */
  get millisToWait(): number {
    const left = Number(this.call.getDeadline()) - Date.now();
    return Math.min(left - ANSWER_MILLIS, left * (1 - ANSWER_PART));
  }

  /** Runs `work` with a client that disconnects when the gateway gives up, or when nobody is to wait any more. */
  async whilePresent<T>(work: (client: CallerPresence) => Promise<T>): Promise<T> {
    const client = new CallerPresence();
    if (this.#isOver) client.disconnect();
    this.#waiting.add(client);
    try {
      return await work(client);
    } finally {
      this.#waiting.delete(client);
    }
  }

  /** Has nobody wait from now on. */
  withdrawWaiting(): void {
    this.#isOver = true;
    for (const client of [...this.#waiting]) client.disconnect();
  }
}
