import { Agent, request } from 'node:http';

/** One request, and what came of it. */
export interface Outcome {
  /** Undefined where there was no answer. */
  readonly status: number | undefined;
  readonly retryAfter: string | undefined;
  readonly error: string | undefined;
}

/** Clients that check one after the other, on connections that are kept alive. */
export class SteadyLoad {
  readonly outcomes: Outcome[] = [];
  readonly #agent = new Agent({ keepAlive: true });
  readonly #clients: Promise<void>[];
  #isOver = false;

  /** @param pathOf the path of a client's request, by the number of the client */
  constructor(
    private readonly url: string,
    clients: number,
    private readonly pathOf: (client: number) => string,
  ) {
    this.#clients = Array.from({ length: clients }, (_, client) => this.#repeat(client));
  }

  /** Resolves when every client has its last answer. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#clients);
    this.#agent.destroy();
  }

  async #repeat(client: number): Promise<void> {
    while (!this.#isOver) this.outcomes.push(await this.#ask(this.pathOf(client)));
  }

  #ask(path: string): Promise<Outcome> {
    return new Promise((resolve) => {
      request(this.url + path, { method: 'POST', agent: this.#agent })
        .on('response', (response) => {
          const { statusCode: status, headers } = response;
          response.resume().on('end', () => {
            resolve({ status, retryAfter: headers['retry-after'], error: undefined });
          });
        })
        .on('error', ({ message: error }) => {
          resolve({ status: undefined, retryAfter: undefined, error });
        })
        .end();
    });
  }
}

/** Those that are neither a decision, nor a 503 that says when to come back. */
export function failures(outcomes: readonly Outcome[]): Outcome[] {
  return outcomes.filter(
    ({ status, retryAfter }) =>
      status !== 200 && status !== 429 && !(status === 503 && retryAfter !== undefined),
  );
}
