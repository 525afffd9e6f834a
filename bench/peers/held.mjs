// The limit for waiters: a bare HTTP server that holds its requests until an IPC message lets it answer them.
// It replies with the moment at which it began.
import { createServer } from 'node:http';

const body = '{"request_id":"33ae0015-5d23-4b92-a7d9-c2632dd50c59"}';
let held = [];

createServer((_request, response) => {
  held.push(response);
}).listen(Number(process.env.PORT), '127.0.0.1');

process.on('message', ({ ask }) => {
  if (ask === 'held') process.send({ held: held.length });
  if (ask !== 'answer') return;
  const beganAt = performance.timeOrigin + performance.now();
  const responses = held;
  held = [];
  for (const response of responses) {
    response.setHeader('Content-Type', 'application/json');
    response.setHeader('Content-Length', body.length);
    response.end(body);
  }
  process.send({ beganAt });
});
