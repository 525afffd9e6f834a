// The limit of what node:http2 can do: a server that reads each call, decides nothing and answers a constant.
import { Buffer } from 'node:buffer';
import { createServer } from 'node:http2';

/** A reply whose code is OK, in its frame. */
const REPLY = Buffer.from('00000000020801', 'hex');
const HEADERS = { ':status': 200, 'content-type': 'application/grpc+proto' };

createServer()
  .on('stream', (stream) => {
    stream.on('error', () => undefined);
    stream.on('data', () => undefined);
    stream.on('end', () => {
      stream.respond(HEADERS, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': 0 }));
      stream.end(REPLY);
    });
  })
  .listen(Number(process.env.PORT), '127.0.0.1');
