import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

import type { RequestHandler, Response } from 'express';

import { type Clock, systemClock } from '../../common/clock.js';
import type { DescribedSettings } from '../openapi/operation.js';
import {
  PAGE,
  PAGE_FILES,
  PAGE_HEADERS,
  type PageFile,
  PHONE_STYLE,
  START_SCRIPT,
} from '../openapi/page.js';
import { BROWSER_HEADERS } from '../replies/headers.js';
import { serviceError } from '../../service/service-error.js';
import { JSON_TYPE, send, writeHead } from '../replies/reply.js';
import { waitForDrain } from './wait-for-drain.js';

const PART_BYTES = 64 * 1024;

const { resolve } = createRequire(import.meta.url);

/** `GET /openapi.json`. The first request loads the modules that make the document. */
export function openApiJson(settings: DescribedSettings): RequestHandler {
  let text: string | undefined;
  return async (_request, response) => {
    const { openApiDocument } = await import('../openapi/document.js');
    text ??= JSON.stringify(openApiDocument(settings));
    send(response, 200, JSON_TYPE, text, BROWSER_HEADERS);
  };
}

/** `GET /docs` */
export const docsPage: RequestHandler = (_request, response) => {
  send(response, 200, 'text/html; charset=utf-8', PAGE, PAGE_HEADERS);
};

/** `GET /docs/{file}`. The library's files are read at their first request, and kept. */
export function docsFile(clock: Clock = systemClock): RequestHandler<{ file: string }> {
  const contents = new Map<PageFile, Buffer>();
  return async (request, response) => {
    const { file } = request.params;
    if (!isPageFile(file)) throw serviceError('PATH_NOT_FOUND', { path: request.path });
    const content = contents.get(file) ?? (await contentOf(file));
    contents.set(file, content);
    await sendInParts(response, PAGE_FILES[file], content, clock);
  };
}

function isPageFile(name: string): name is PageFile {
  return Object.hasOwn(PAGE_FILES, name);
}

async function contentOf(file: PageFile): Promise<Buffer> {
  if (file === 'start.js') return Buffer.from(START_SCRIPT);
  if (file === 'phone.css') return Buffer.from(PHONE_STYLE);
  return readFile(resolve(`swagger-ui-dist/${file}`));
}

/** Keeps the memory for each client small: TLS would encrypt the whole content at once. */
async function sendInParts(
  response: Response,
  type: string,
  content: Buffer,
  clock: Clock,
): Promise<void> {
  writeHead(response, 200, type, PAGE_HEADERS, content.length);
  for (let start = 0; start < content.length; start += PART_BYTES) {
    const part = content.subarray(start, start + PART_BYTES);
    if (!response.write(part) && !(await waitForDrain(response, clock))) return;
  }
  response.end();
}
