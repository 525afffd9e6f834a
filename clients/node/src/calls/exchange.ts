import { Agent as HttpAgent, request as overHttp } from 'node:http';
import { Agent as HttpsAgent, request as overHttps } from 'node:https';
import { clearTimeout, setTimeout } from 'node:timers';
import { urlToHttpOptions } from 'node:url';

import { SluiceUnavailableError } from '../errors.js';
import { parsed } from './answer-part.js';

export interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Below the base address, with the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Aborting closes the connection. */
  readonly signal: AbortSignal;
  /**
   * Whether aborting only ends the sending side of the connection. Sluice takes that for a disconnect, and an answer
   * that was on its way still arrives.
   */
  readonly isWithdrawn?: boolean;
}

export interface Answer {
  readonly status: number;
  /** By their names in lower case. */
  readonly headers: Readonly<Record<string, unknown>>;
  /** What its text has in JSON; undefined for a text that is no JSON. */
  readonly body: unknown;
}

/** Sends one request, on a connection that it does not share meanwhile. @throws SluiceUnavailableError if it is lost */
export type Exchange = (call: Call) => Promise<Answer>;

/** Longer than the pauses between requests under load, shorter than the 75 s after which Sluice closes idle connections. */
const IDLE_MILLIS = 60_000;
/**
 * After this silence, TCP asks whether the other side is still there: a wait is silent until its turn, and a NAT may forget
 * its connection. Node lets TCP ask ten times, a second apart.
 */
const SILENCE_MILLIS = 15_000;
/** A host that is gone does not refuse a connection. Long enough for a packet to be lost. */
const CONNECT_MILLIS = 2000;
/** How long an answer that was on its way when its caller left is still read. Nobody waits for it. */
export const LATE_MILLIS = 5000;

/**
 * Sends by `node:http`, which takes a tenth of the CPU of `fetch` for a request, and waits for an answer as long as its
 * caller does. `fetch` gives up after five minutes.
 */
export function exchangeByHttp(base: URL): Exchange {
  const isSecure = base.protocol === 'https:';
  const begin = isSecure ? overHttps : overHttp;
  const options = { keepAlive: true, keepAliveMsecs: SILENCE_MILLIS, timeout: IDLE_MILLIS };
  const agent = isSecure ? new HttpsAgent(options) : new HttpAgent(options);
  // Not all options: Node 20.0 takes an object with `href` for a URL, and ignores the others.
  const { protocol, hostname, port, auth } = urlToHttpOptions(base);
  const address = { protocol, hostname, port, auth };
  const prefix = withoutEndSlash(base.pathname);
  return ({ path, body, signal, isWithdrawn = false, ...call }) =>
    new Promise((resolve, reject) => {
      let isConnected = false;
      let isOver = false;
      const request = begin({ ...address, ...call, path: prefix + path, agent }, (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => (text += chunk));
        response.on('error', lost);
        response.on('end', () => {
          const { statusCode = 0, headers } = response;
          isOver = true;
          resolve({ status: statusCode, headers, body: parsed(text) });
        });
      });
      request.on('error', lost);
      request.on('socket', (socket) => {
        isConnected = !socket.connecting;
        if (isConnected) return;
        const timer = setTimeout(
          () => request.destroy(new Error(`no connection within ${CONNECT_MILLIS} ms`)),
          CONNECT_MILLIS,
        );
        socket.once('close', () => clearTimeout(timer));
        socket.once(isSecure ? 'secureConnect' : 'connect', () => {
          clearTimeout(timer);
          isConnected = true;
          // Over TLS, the agent would ask for it only once the first request is answered.
          socket.setKeepAlive(true, SILENCE_MILLIS);
        });
      });
      const leave = (): void => {
        const { socket } = request;
        // Its connection may serve another call by now.
        if (isOver) return;
        if (!isWithdrawn || !isConnected || socket === null) {
          request.destroy();
          return;
        }
        socket.end();
        const timer = setTimeout(() => request.destroy(), LATE_MILLIS);
        socket.once('close', () => clearTimeout(timer));
      };
      if (signal.aborted) leave();
      else signal.addEventListener('abort', leave);
      request.on('close', () => signal.removeEventListener('abort', leave));
      function lost(cause: unknown): void {
        isOver = true;
        reject(unanswered(cause, isConnected));
      }
      // Without it, Node sends the body of a DELETE without a length, so that it is not read as a body.
      if (body !== undefined) request.setHeader('Content-Length', Buffer.byteLength(body));
      request.end(body);
    });
}

export function exchangeByFetch(base: URL, send: typeof fetch): Exchange {
  const prefix = withoutEndSlash(base.href);
  return async ({ path, isWithdrawn: _, ...call }) => {
    try {
      const response = await send(prefix + path, { ...call, redirect: 'manual' });
      const headers = Object.fromEntries(response.headers);
      return { status: response.status, headers, body: parsed(await response.text()) };
    } catch (cause) {
      throw unanswered(cause, !isNeverSent(cause));
    }
  };
}

function unanswered(cause: unknown, mayHaveCounted: boolean): SluiceUnavailableError {
  const message = mayHaveCounted ? 'the answer from Sluice was lost' : 'Sluice is unreachable';
  return new SluiceUnavailableError(message, { cause, mayHaveCounted });
}

/** Of an AggregateError: one error for each address of a name. */
type Failure = NodeJS.ErrnoException & { readonly errors?: readonly unknown[] };

/** Whether a `fetch` failed since there was no connection to send anything on. */
export function isNeverSent(error: unknown): boolean {
  const { syscall, code, errors = [], cause } = (error ?? {}) as Failure;
  return (
    syscall === 'connect' ||
    syscall === 'getaddrinfo' ||
    // From Node's `fetch`.
    code === 'UND_ERR_CONNECT_TIMEOUT' ||
    (errors.length > 0 && errors.every(isNeverSent)) ||
    (cause !== undefined && isNeverSent(cause))
  );
}

function withoutEndSlash(text: string): string {
  return text.replace(/\/+$/, '');
}
