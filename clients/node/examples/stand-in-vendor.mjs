import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';

// In place of an LLM's API: it takes a second for a call, and refuses a third call at the same time.
const MOST_AT_ONCE = 2;
const stats = { answered: 0, refused: 0, mostAtOnce: 0 };
let running = 0;

const server = createServer(async (request, response) => {
  if (request.url === '/stats') return response.end(JSON.stringify(stats));
  const { content } = (await json(request)).messages[0];
  if (running === MOST_AT_ONCE) {
    stats.refused += 1;
    return response.writeHead(429, { 'Retry-After': '1' }).end();
  }
  running += 1;
  stats.mostAtOnce = Math.max(stats.mostAtOnce, running);
  const answer = setTimeout(
    () => {
      stats.answered += 1;
      const message = { role: 'assistant', content: content.toUpperCase() };
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ choices: [{ message }], usage: { total_tokens: 120 } }));
    },
    content.includes('for an hour') ? 3_600_000 : 1_000,
  );
  response.on('close', () => {
    running -= 1;
    clearTimeout(answer);
  });
});
server.listen(Number(process.env.PORT), '127.0.0.1');
