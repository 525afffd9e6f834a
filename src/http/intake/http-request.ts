import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

import type { CallerPresence } from '../../limiter/caller-presence.js';
import type { Caller } from '../../service/callers/caller.js';
import type { ErrorCode } from '../../service/errors.js';
import {
  type ConnectedRequest,
  correlationIdOf,
  type RequestContext,
  type RequestHeaders,
} from '../../service/request-context.js';
import { untilDisconnect } from './disconnect.js';

/** What the service knows of a request over HTTP. */
export class HttpRequest implements ConnectedRequest {
  readonly correlationId: string;
  readonly startedAt = performance.now();
  readonly headers: RequestHeaders;
  caller: Caller | undefined;
  span: RequestContext['span'];
  bulkSpan: RequestContext['bulkSpan'];
  readonly #socket: Socket;

  constructor({ headers, socket }: IncomingMessage) {
    this.correlationId = correlationIdOf(headers);
    this.headers = headers;
    this.#socket = socket;
  }

  get owner(): string {
    return this.caller?.name ?? this.#socket.remoteAddress ?? '';
  }

  whilePresent<T>(work: (client: CallerPresence) => Promise<T>): Promise<T> {
    return untilDisconnect(this.#socket, work);
  }
}

declare global {
  // eslint-disable-next-line @typescript-eslint/no-namespace -- how Express's types are extended
  namespace Express {
    /** What `response.locals` has of a request until its answer is out. */
    interface Locals {
      context: ConnectedRequest;
      /** Whether there are parameters in the body; undefined without a body that may have some. */
      hasBodyParameters?: Promise<boolean> | undefined;
      /** The error that the request is answered with. */
      errorCode?: ErrorCode;
      /** How many bytes of its answer count as unsent. */
      unsentBytes?: number;
      /** The name of the limit that has denied the check, if its key has several. */
      limit?: string;
    }
  }
}
