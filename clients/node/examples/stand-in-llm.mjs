import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';

// In place of the APIs of OpenAI and Anthropic, whose SDKs can both read its answer. It allows 3 calls at once, and 20 calls
// and 10,000 tokens in any minute. Others also use the account `shared`, and have left little of its minute.
const MINUTE_MILLIS = Number(process.env.MINUTE_MILLIS ?? 60_000);
const ANSWER = JSON.stringify({
  ...{ id: '1', object: 'chat.completion', created: 1, model: 'any', type: 'message' },
  choices: [{ index: 0, message: { role: 'assistant', content: 'Hello' }, finish_reason: 'stop' }],
  ...{ role: 'assistant', content: [{ type: 'text', text: 'Hello' }], stop_reason: 'end_turn' },
  usage: {
    prompt_tokens: 300,
    completion_tokens: 150,
    total_tokens: 450,
    input_tokens: 300,
    output_tokens: 150,
  },
});
const stats = { answered: 0, refused: 0, mostAtOnce: 0, mostCalls: 0, mostTokens: 0 };
let atOnce = 0;
let times = [];

const server = createServer(async (request, response) => {
  if (request.url === '/stats') return response.end(JSON.stringify(stats));
  const { authorization, 'x-api-key': apiKey = authorization } = request.headers;
  await json(request);
  times = times.filter((time) => time > Date.now() - MINUTE_MILLIS);
  const [calls, tokens] = [times.length + 1, (times.length + 1) * 450];
  if (atOnce === 3 || calls > 20 || tokens > 10_000) {
    stats.refused += 1;
    return response.writeHead(429, { 'Retry-After': '1' }).end();
  }
  times.push(Date.now());
  atOnce += 1;
  stats.mostAtOnce = Math.max(stats.mostAtOnce, atOnce);
  stats.mostCalls = Math.max(stats.mostCalls, calls);
  stats.mostTokens = Math.max(stats.mostTokens, tokens);
  setTimeout(() => {
    atOnce -= 1;
    stats.answered += 1;
    response.setHeader('content-type', 'application/json');
    if (apiKey?.endsWith('shared')) {
      for (const [unit, left] of [
        ['requests', '9'],
        ['tokens', '1500'],
      ]) {
        response.setHeader(`x-ratelimit-remaining-${unit}`, left);
        response.setHeader(`x-ratelimit-reset-${unit}`, '51s');
      }
    }
    response.end(ANSWER);
  }, 200);
});
server.listen(Number(process.env.PORT), '127.0.0.1');
