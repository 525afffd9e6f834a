import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A server that answers as the APIs of OpenAI and Anthropic do, with one answer for each. */
export interface LlmVendors {
  readonly url: string;
  /** The paths that were asked for. */
  readonly paths: readonly string[];
}

/** Others have used most of the minute: 9 requests and 1,500 tokens remain. */
const OPENAI_LIMITS = {
  'x-ratelimit-limit-requests': '60',
  'x-ratelimit-remaining-requests': '9',
  'x-ratelimit-reset-requests': '51s',
  'x-ratelimit-limit-tokens': '10000',
  'x-ratelimit-remaining-tokens': '1500',
  'x-ratelimit-reset-tokens': '51s',
};
const COMPLETION = {
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1,
  model: 'gpt-5',
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
};
const MESSAGE = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-sonnet-5',
  content: [{ type: 'text', text: 'Hello' }],
  stop_reason: 'end_turn',
  stop_sequence: null,
  usage: { input_tokens: 3, output_tokens: 1 },
};

function anthropicLimits(): Record<string, string> {
  const reset = new Date(Date.now() + 51_000).toISOString();
  return {
    'anthropic-ratelimit-requests-limit': '60',
    'anthropic-ratelimit-requests-remaining': '9',
    'anthropic-ratelimit-requests-reset': reset,
    'anthropic-ratelimit-tokens-limit': '10000',
    'anthropic-ratelimit-tokens-remaining': '1500',
    'anthropic-ratelimit-tokens-reset': reset,
  };
}

function answerTo({ method, url }: IncomingMessage): [number, Record<string, string>, object] {
  switch (`${method ?? ''} ${url ?? ''}`) {
    case 'POST /v1/chat/completions':
      return [200, OPENAI_LIMITS, COMPLETION];
    case 'POST /v1/messages':
      return [200, anthropicLimits(), MESSAGE];
    default:
      return [404, {}, { error: { message: 'not found' } }];
  }
}

/** Serves the vendors while the tests of this file run. */
export function useLlmVendors(): LlmVendors {
  const paths: string[] = [];
  let server: Server;
  beforeAll(async () => {
    server = createServer((request, response) => {
      const [status, headers, body] = answerTo(request);
      paths.push(request.url ?? '');
      request.resume().on('end', () => {
        response.writeHead(status, { 'content-type': 'application/json', ...headers });
        response.end(JSON.stringify(body));
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterAll(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  return {
    get url() {
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    },
    paths,
  };
}
