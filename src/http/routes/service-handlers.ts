import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';

import type { RequestHandler } from 'express';

import type { Metrics } from '../../metrics/prometheus-metrics.js';
import type { Readiness } from '../../readiness/readiness.js';
import { serviceError } from '../../service/errors.js';
import type { DescribedSettings } from '../openapi/operation.js';
import {
  PAGE,
  PAGE_FILES,
  PAGE_HEADERS,
  type PageFile,
  PHONE_STYLE,
  START_SCRIPT,
} from '../openapi/page.js';
import { BROWSER_HEADERS, JSON_TYPE, PLAIN_TEXT, send, sendShared } from '../replies/reply.js';

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

/** `GET /healthz`. The answer says only that the process lives. */
export const healthz: RequestHandler = (_request, response) => {
  send(response, 200, PLAIN_TEXT, 'OK', BROWSER_HEADERS);
};

/**
 * `GET /readyz`. The answer says whether requests should come here, or why not, one reason on each line. An OK is
 * followed by warnings, if there are any.
 */
export function readyz(readiness: Readiness): RequestHandler {
  return async (_request, response) => {
    const { reasons, remarks } = await readiness.assess();
    if (reasons.length > 0) throw serviceError('NOT_READY', { reasons: reasons.join('\n') });
    send(response, 200, PLAIN_TEXT, ['OK', ...remarks].join('\n'), BROWSER_HEADERS);
  };
}

/** `GET /metrics`, for Prometheus. */
export function metricsText(metrics: Metrics): RequestHandler {
  return async (_request, response) => {
    send(response, 200, metrics.contentType, await metrics.text(), BROWSER_HEADERS);
  };
}
