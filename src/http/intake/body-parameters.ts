import type { IncomingMessage } from 'node:http';

/** As much is read of a body. One that is larger is not empty. */
const MAX_BYTES = 4096;

/** The types of bodies in which clients send parameters. */
const OF_PARAMETERS =
  /^(application\/json|application\/x-www-form-urlencoded|multipart\/form-data) *(?:;|$)/i;
/** Bodies without a parameter, as clients send them that have none, without white space. */
const EMPTY: readonly string[] = ['', '{}', '[]', 'null'];

/** The requests whose bodies are read, and whether there are parameters in them. */
const found = new WeakMap<IncomingMessage, Promise<boolean>>();

/** Whether a request with a body says that it may have parameters in it. */
export function mayHaveParameters({ headers }: IncomingMessage): boolean {
  return OF_PARAMETERS.test(headers['content-type'] ?? '');
}

/**
 * Whether there are parameters in the body of a request. Reads the body, of which it keeps little, the first time that it
 * is called. Never resolves if the client disconnects before the end.
 */
export function hasParameters(request: IncomingMessage): Promise<boolean> {
  let answer = found.get(request);
  if (!answer) {
    answer = look(request);
    found.set(request, answer);
  }
  return answer;
}

function look(request: IncomingMessage): Promise<boolean> {
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= MAX_BYTES) {
        // A copy: a small piece would keep all that was read with it in memory.
        chunks.push(Buffer.from(chunk));
        return;
      }
      chunks.length = 0;
      resolve(true);
    });
    request.once('end', () => {
      const text = Buffer.concat(chunks).toString().replace(/\s+/g, '');
      resolve(bytes > MAX_BYTES || !EMPTY.includes(text));
    });
  });
}
