import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { extname } from 'node:path';

import type { RequestHandler } from 'express';

import { sendShared, writeHead } from '../../replies/reply.js';

/** Beside `src` and beside `dist` alike. */
const FOLDER = new URL('../../../../ui/', import.meta.url);

const { resolve } = createRequire(import.meta.url);

/** The files of the library that draws charts, by the names that the page loads them by. */
const LIBRARY_FILES: Readonly<Record<string, string>> = {
  'uplot.js': resolve('uplot/dist/uPlot.iife.min.js'),
  'uplot.css': resolve('uplot/dist/uPlot.min.css'),
};

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

const INLINE_SCRIPT = /<script type="module">([^]+?)<\/script>/;

/**
 * The page loads from and connects to this service only, its scripts can't turn text into HTML, and no page may frame
 * it. Its inline script is allowed by its hash.
 */
const POLICY = [
  "default-src 'none'",
  `script-src 'self' 'sha256-${hashOf(inlineScript(), 'base64')}'`,
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

/**
 * The handlers of the page's files, by name. The files contain no secrets, so that they need no token. A browser caches
 * them, and asks each time whether they have changed.
 */
export function pageFileHandlers(): ReadonlyMap<string, RequestHandler> {
  const own = readdirSync(FOLDER).map((name): [string, URL] => [name, new URL(name, FOLDER)]);
  return new Map(
    [...own, ...Object.entries(LIBRARY_FILES)].map(([name, path]) => [name, handlerOf(name, path)]),
  );
}

function handlerOf(name: string, path: string | URL): RequestHandler {
  const content = readFileSync(path);
  const type = TYPES[extname(name)];
  if (type === undefined) throw new Error(`ui/${name} has no known content type`);
  const tag = `"${hashOf(content, 'base64url').slice(0, 22)}"`;
  const headers = [
    ...['ETag', tag, 'Cache-Control', 'no-cache'],
    ...['Content-Security-Policy', POLICY, 'Referrer-Policy', 'no-referrer'],
  ];
  return (request, response) => {
    if (request.headers['if-none-match'] === tag) {
      writeHead(response, 304, type, headers);
      response.end();
      return;
    }
    return sendShared(response, type, content, headers);
  };
}

function inlineScript(): string {
  const page = readFileSync(new URL('index.html', FOLDER), 'utf8');
  return INLINE_SCRIPT.exec(page)?.[1] ?? '';
}

function hashOf(text: string | Buffer, encoding: 'base64' | 'base64url'): string {
  return createHash('sha256').update(text).digest(encoding);
}
