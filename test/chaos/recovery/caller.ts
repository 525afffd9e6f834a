import { once } from 'node:events';
import { Agent, request } from 'node:http';

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

/** Sends requests to one replica, on connections that are kept. */
export class Caller {
  readonly #agent = new Agent({ keepAlive: true });
  readonly #host: string;
  readonly #port: string;

  constructor(url: string) {
    ({ hostname: this.#host, port: this.#port } = new URL(url));
  }

  /** @param content sent as JSON, where there is one */
  begin(method: string, path: string, content?: unknown): Asked {
    const [host, port, agent] = [this.#host, this.#port, this.#agent];
    const headers = content === undefined ? {} : { 'Content-Type': 'application/json' };
    const client = request({ host, port, method, path, agent, headers });
    const answer = new Promise<Told>((resolve, reject) => {
      client.on('error', reject);
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
    client.end(content === undefined ? undefined : JSON.stringify(content));
    return { answer, sent, leave: () => void client.destroy() };
  }

  close(): void {
    this.#agent.destroy();
  }
}
