import { once } from 'node:events';
import { Agent, type ClientRequestArgs, type OutgoingHttpHeaders, request } from 'node:http';
import { connect, type Socket, type TcpNetConnectOpts } from 'node:net';
import type { Duplex } from 'node:stream';

import { JSON_HEADERS } from '../../bulk-client.js';

const MOST_UNANSWERED = 100;
/** Earlier than the service closes a connection that is idle. */
const UNUSED_MILLIS = 20_000;
const GREETING = 'GET /healthz HTTP/1.1\r\nHost: test\r\n\r\n';

/**
 * Keeps connections, and makes only some at a time: each is made when the service has answered on it. Where more than
 * its backlog wait to be accepted, the kernel loses or resets some of them.
 */
class PatientAgent extends Agent {
  #unanswered = 0;
  readonly #waiting: (() => void)[] = [];

  constructor() {
    super({ keepAlive: true, maxFreeSockets: Infinity, timeout: UNUSED_MILLIS });
  }

  override createConnection(
    options: ClientRequestArgs,
    callback?: (error: Error | null, socket: Duplex) => void,
  ): undefined {
    void this.#open(options as TcpNetConnectOpts, (error, socket) => callback?.(error, socket));
  }

  async #open(
    options: TcpNetConnectOpts,
    callback: (error: Error | null, socket: Socket) => void,
  ): Promise<void> {
    while (this.#unanswered >= MOST_UNANSWERED) {
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
    this.#unanswered += 1;
    const socket = connect(options);
    try {
      socket.write(GREETING);
      await once(socket, 'data');
      callback(null, socket);
    } catch (error) {
      callback(error as Error, socket);
    } finally {
      this.#unanswered -= 1;
      this.#waiting.shift()?.();
    }
  }
}

/** What is read of an answer. */
export interface Told {
  readonly status: number;
  readonly body: unknown;
}

/** A request whose answer is still to come. */
export interface Asked {
  readonly answer: Promise<Told>;
  /** Settles when all of it has been handed to the system. */
  readonly sent: Promise<unknown>;
  /** Closes the connection. */
  leave(): void;
}

/** Sends requests to one replica. */
export class Caller {
  readonly #agent = new PatientAgent();
  readonly #host: string;
  readonly #port: string;

  constructor(url: string) {
    ({ hostname: this.#host, port: this.#port } = new URL(url));
  }

  /** @param content sent as JSON, if there is one */
  begin(method: string, path: string, content?: unknown): Asked {
    const agent = this.#agent;
    const [host, port] = [this.#host, this.#port];
    const body = content === undefined ? undefined : JSON.stringify(content);
    // Node gives the body of a DELETE no length by itself.
    const headers: OutgoingHttpHeaders =
      body === undefined ? {} : { ...JSON_HEADERS, 'Content-Length': Buffer.byteLength(body) };
    const client = request({ host, port, method, path, agent, headers });
    const answer = new Promise<Told>((resolve, reject) => {
      client.on('error', reject);
      // One that leaves in the middle of an answer has no error.
      client.on('close', () => {
        reject(new Error('closed before the answer'));
      });
      client.on('response', (response) => {
        let text = '';
        response.setEncoding('utf8');
        response.on('error', reject);
        response.on('data', (chunk: string) => (text += chunk));
        response.on('end', () => {
          resolve({ status: response.statusCode!, body: JSON.parse(text) as unknown });
        });
      });
    });
    const sent = once(client, 'finish');
    // One that leaves has no use for the errors that this is to it.
    for (const promise of [answer, sent]) promise.catch(() => undefined);
    client.end(body);
    return { answer, sent, leave: () => void client.destroy() };
  }

  /** Closes the connections that are kept. */
  close(): void {
    this.#agent.destroy();
  }
}
