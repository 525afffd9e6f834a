import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

import type { RequestHandler } from 'express';

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
import { JSON_TYPE, send, sendShared } from '../replies/reply.js';

const { resolve } = createRequire(import.meta.url);

/** `GET /openapi.json`. The first request loads the modules that make the document. */
export function openApiJson(settings: DescribedSettings): RequestHandler {
  let document: Buffer | undefined;
  return async (_request, response) => {
    const { openApiDocument } = await import('../openapi/document.js');
    document ??= Buffer.from(JSON.stringify(openApiDocument(settings)));
    await sendShared(response, JSON_TYPE, document, BROWSER_HEADERS);
  };
}

/** `GET /docs` */
export const docsPage: RequestHandler = (_request, response) => {
  send(response, 200, 'text/html; charset=utf-8', PAGE, PAGE_HEADERS);
};

/** `GET /docs/{file}`. The library's files are read at their first request, and kept. */
export function docsFile(): RequestHandler<{ file: string }> {
  const contents = new Map<PageFile, Buffer>();
  return async (request, response) => {
    const { file } = request.params;
    if (!isPageFile(file)) throw serviceError('PATH_NOT_FOUND', { path: request.path });
    const content = contents.get(file) ?? (await contentOf(file));
    contents.set(file, content);
    await sendShared(response, PAGE_FILES[file], content, PAGE_HEADERS);
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
