import { setTimeout as delay } from 'node:timers/promises';

import type { RequestHandler } from 'express';

import { inSlices } from '../../service/deciding/slices.js';
import type { Service } from '../../service/service.js';
import { debugBody, debugDetailBody } from '../../api/debug-body.js';
import { BROWSER_HEADERS, sendJson, writeHead, writePart } from '../replies/reply.js';
import type { HttpParts } from './http-parts.js';

/** The pause after each page of a listing, in which the event loop serves checks. Patterns are matched in slices. */
const PAGE_PAUSE_MILLIS = 1;

/** The body names lists of waiters, and no single ones. */
const NO_WAITERS = 0;

/**
 * `GET /debug`, with the keys that the caller may see. The answer is streamed, so that any number of keys takes little
 * memory. It ends with the digest of the rules, if there are rules.
 */
export function debugAll({ service, rules }: HttpParts): RequestHandler {
  const { limiter, access, slices } = service;
  return async (_request, response) => {
    const { context } = response.locals;
    const pages = limiter.list()[Symbol.asyncIterator]();
    // The first page is read before the status goes out, so that an unreachable store gives a 503.
    let next = await pages.next();
    writeHead(response, 200, 'application/json', BROWSER_HEADERS);
    // As bytes: Node would write the head in the encoding of a text.
    response.write(Buffer.from('{"Instances":{'));
    for (let separator = ''; !next.done && !response.closed; next = await pages.next()) {
      const entries: string[] = [];
      await inSlices(next.value, slices, context, (instance) => {
        if (!access.mayUse(instance.key, context)) return;
        entries.push(`${JSON.stringify(instance.key)}:${JSON.stringify(debugBody(instance))}`);
      });
      // Also after a page without a key that the caller may see: the next one may be found in the same tick.
      await delay(PAGE_PAUSE_MILLIS);
      if (entries.length === 0) continue;
      if (!(await writePart(response, Buffer.from(separator + entries.join())))) return;
      separator = ',';
    }
    const { rules: inForce, digest } = rules.current;
    const part = JSON.stringify({ Digest: digest, Count: inForce.length });
    response.end(inForce.length === 0 ? '}}' : `},"Rules":${part}}`);
  };
}

/** `GET /debug/{key}` */
export function debugOne({ limiter }: Service): RequestHandler<{ key: string }> {
  return async (request, response) => {
    // The status is always 200. A key that is too long to exist is not found.
    const { key } = request.params;
    const [detail, holdings] = await Promise.all([
      limiter.ask('examine', { key, mostQueued: NO_WAITERS }),
      limiter.ask('holdings', { key }),
    ]);
    const body = detail ? debugDetailBody(detail, holdings) : { Key: key, Found: false };
    sendJson(response, 200, body, BROWSER_HEADERS);
  };
}
