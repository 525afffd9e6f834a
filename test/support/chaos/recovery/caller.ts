import { once } from 'node:events';
import { type OutgoingHttpHeaders, request } from 'node:http';

import { JSON_HEADERS } from '../../bulk-client.js';
import { PatientAgent } from './patient-agent.js';

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
