import { open } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { pipeline } from 'node:stream/promises';

import type { RequestHandler, Response } from 'express';

import type { DescribedSettings } from '../openapi/operation.js';
import { PAGE, PAGE_FILES, PAGE_HEADERS, type PageFile, START_SCRIPT } from '../openapi/page.js';
import { BROWSER_HEADERS } from '../replies/headers.js';
import { httpError } from '../replies/http-error.js';
import { JSON_TYPE, send, writeHead } from '../replies/reply.js';

/** How long a client may read nothing of a file. A client that stopped would hold the file open for ever. */
const READ_TIMEOUT_MILLIS = 30_000;

const { resolve } = createRequire(import.meta.url);

/** `GET /openapi.json`. What makes the document is loaded by the first who asks for it. */
export function openApiJson(settings: DescribedSettings): RequestHandler {
  let text: Promise<string> | undefined;
  return async (_request, response) => {
    text ??= import('../openapi/document.js').then(({ openApiDocument }) =>
      JSON.stringify(openApiDocument(settings)),
    );
    send(response, 200, JSON_TYPE, await text, BROWSER_HEADERS);
  };
}

/** `GET /docs` */
export const docsPage: RequestHandler = (_request, response) => {
  send(response, 200, 'text/html; charset=utf-8', PAGE, PAGE_HEADERS);
};

/** `GET /docs/{file}` */
export const docsFile: RequestHandler<{ file: string }> = async (request, response) => {
  const { file } = request.params;
  if (!isPageFile(file)) throw httpError('PATH_NOT_FOUND', { path: request.path });
  if (file === 'start.js') send(response, 200, PAGE_FILES[file], START_SCRIPT, PAGE_HEADERS);
  else await sendFile(response, resolve(`swagger-ui-dist/${file}`), PAGE_FILES[file]);
};

function isPageFile(name: string): name is PageFile {
  return Object.hasOwn(PAGE_FILES, name);
}

/** Streams a file, of which little is in memory at a time. */
async function sendFile(response: Response, path: string, type: string): Promise<void> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    writeHead(response, 200, type, PAGE_HEADERS, size);
    if (response.req.method === 'HEAD') {
      response.end();
      return;
    }
    response.setTimeout(READ_TIMEOUT_MILLIS, () => response.destroy());
    await pipeline(file.createReadStream({ autoClose: false }), response);
  } catch (error) {
    // A client may leave before the end.
    if (!response.destroyed) throw error;
  } finally {
    await file.close();
  }
}
