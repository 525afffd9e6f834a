import { randomUUID } from 'node:crypto';
import { Agent, type ClientRequest, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

import { ratePath } from '../support/http-client.js';

/** A kind of check, and the number of clients that send it. */
export interface Sort {
  readonly key: string;
  readonly maxRequests: number;
  readonly canWait: boolean;
  readonly clients: number;
}

export interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly body: { readonly request_id?: string; readonly error?: string };
}

/** Whether an answer is a decision, or a 503 that says when to come back. */
export function isExpected({ status, retryAfter = '' }: Answer): boolean {
  return status === 200 || status === 429 || (status === 503 && /^[1-9]\d*$/.test(retryAfter));
}

/** A request and its outcome. */
export interface Asked {
  readonly correlationId: string;
  readonly sort: Sort;
  readonly answer?: Answer;
  /** Why there is no answer. */
  readonly failure?: Error;
  /** Whether its connection had been used before. */
  readonly onUsedConnection: boolean;
}

const PAUSE_MILLIS = 20;

/** How clients connect and how often they ask. */
interface Manner {
  /** The agent of the client with this number. */
  readonly agent: (client: number) => Agent;
  readonly pauseMillis: number;
}

const HALF_KEPT: Manner = {
  agent: (client) => new Agent({ keepAlive: client % 2 === 0, maxSockets: 1 }),
  pauseMillis: PAUSE_MILLIS,
};

/** Clients that ask again and again, each with one request at a time. */
export class Load {
  readonly asked: Asked[] = [];
  readonly #clients: Promise<void>[];
  #isOver = false;

  constructor(
    private readonly url: string,
    sorts: readonly Sort[],
    manner: Partial<Manner> = {},
  ) {
    const { agent, pauseMillis } = { ...HALF_KEPT, ...manner };
    this.#clients = sorts.flatMap((sort) =>
      Array.from({ length: sort.clients }, (_, i) => this.#repeat(sort, agent(i), pauseMillis)),
    );
  }

  /** Sends no more requests, and resolves when all have ended. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#clients);
  }

  async #repeat(sort: Sort, agent: Agent, pauseMillis: number): Promise<void> {
    while (!this.#isOver) {
      this.asked.push(await ask(this.url, sort, agent));
      await delay(pauseMillis);
    }
    agent.destroy();
  }
}

async function ask(url: string, sort: Sort, agent: Agent): Promise<Asked> {
  const correlationId = randomUUID();
  const query = `?maxRequests=${sort.maxRequests}&canWait=${sort.canWait}`;
  const sent = request(url + ratePath(sort.key) + query, {
    method: 'POST',
    agent,
    headers: { 'X-Correlation-ID': correlationId },
  });
  let outcome: Pick<Asked, 'answer'> | Pick<Asked, 'failure'>;
  try {
    outcome = { answer: await answerTo(sent) };
  } catch (error) {
    outcome = { failure: error as Error };
  }
  return { correlationId, sort, onUsedConnection: sent.reusedSocket, ...outcome };
}

function answerTo(sent: ClientRequest): Promise<Answer> {
  return new Promise((resolve, reject) => {
    sent.on('error', reject);
    sent.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('error', reject);
      response.on('data', (part: string) => (text += part));
      response.on('end', () => {
        const { statusCode, headers } = response;
        // The balancer's own answers are not JSON.
        const isJson = headers['content-type'] === 'application/json';
        const body = isJson ? (JSON.parse(text) as object) : { error: text };
        resolve({ status: statusCode!, retryAfter: headers['retry-after'], body });
      });
    });
    sent.end();
  });
}
