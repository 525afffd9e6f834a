import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What the next answer says. */
export interface ModelState {
  status: number;
  remainingRequests: number;
  remainingTokens: number;
  retryAfter?: string;
}

/** A server that answers like OpenAI's. */
export interface ModelServer {
  readonly url: string;
  readonly next: ModelState;
}

/** Starts such servers, each of which ends with its test. */
export function useModelServers(): (next: Partial<ModelState>) => Promise<ModelServer> {
  const stops: (() => Promise<void>)[] = [];
  afterEach(async () => {
    await Promise.all(stops.splice(0).map((stop) => stop()));
  });
  return async (given) => {
    const next = { status: 200, remainingRequests: 500, remainingTokens: 30_000, ...given };
    const server = createServer((_, response) => {
      const { status, remainingRequests, remainingTokens, retryAfter } = next;
      response.writeHead(status, {
        'content-type': 'application/json',
        'openai-processing-ms': '12',
        'x-ratelimit-limit-requests': '500',
        'x-ratelimit-limit-tokens': '30000',
        'x-ratelimit-remaining-requests': String(remainingRequests),
        'x-ratelimit-remaining-tokens': String(remainingTokens),
        'x-ratelimit-reset-requests': '120ms',
        'x-ratelimit-reset-tokens': '6m0s',
        ...(retryAfter !== undefined && { 'retry-after': retryAfter }),
      });
      response.end(JSON.stringify({ object: 'chat.completion', choices: [] }));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    stops.push(async () => {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    });
    const { port } = server.address() as AddressInfo;
    return { url: `http://127.0.0.1:${port}/v1/chat/completions`, next };
  };
}
