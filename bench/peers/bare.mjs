// The limit of what Node can do: an HTTP server that decides nothing and answers a constant.
import { createServer } from 'node:http';

const body = '{"request_id":"33ae0015-5d23-4b92-a7d9-c2632dd50c59"}';

createServer((_request, response) => {
  response.setHeader('Content-Type', 'application/json');
  response.setHeader('Content-Length', body.length);
  response.end(body);
}).listen(Number(process.env.PORT), '127.0.0.1');
