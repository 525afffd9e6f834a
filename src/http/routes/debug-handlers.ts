import { setTimeout as delay } from 'node:timers/promises';

import type { RequestHandler } from 'express';

import type { FurtherState } from '../../limiter/further-limits.js';
import type { InstanceState, Limiter } from '../../limiter/limiter.js';
import type { Rules } from '../../rules/rules.js';
import type { Access } from '../../service/callers/access.js';
import { inSlices } from '../../service/deciding/in-slices.js';
import type { Turns } from '../../service/deciding/turns.js';
import type { Instance, MissingInstance } from '../../api/answers.js';
import { BROWSER_HEADERS } from '../replies/headers.js';
import { sendJson, writeHead, writePart } from '../replies/reply.js';

/** The pause after each page of a listing, in which the event loop serves checks. Patterns are matched in turns. */
const PAGE_PAUSE_MILLIS = 1;

/**
 * `GET /debug`, with the keys that the caller may see. The answer is streamed, so that any number of keys takes little
 * memory. It ends with the digest of the rules, if there are rules.
 */
export function debugAll(
  limiter: Limiter,
  rules: Pick<Rules, 'current'>,
  access: Pick<Access, 'mayUse'>,
  turns: Pick<Turns, 'next'>,
): RequestHandler {
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
      await inSlices(next.value, turns, context, (instance) => {
        if (!access.mayUse(instance.key, context)) return;
        entries.push(`${JSON.stringify(instance.key)}:${JSON.stringify(toBody(instance))}`);
      });
      // Also after a page without a key that the caller may see: the next one may be found in the same tick.
      await delay(PAGE_PAUSE_MILLIS);
      if (entries.length === 0) continue;
      if (!(await writePart(response, Buffer.from(separator + entries.join())))) return;
      separator = ',';
    }
    response.end(`}${rulesPart(rules.current)}}`);
  };
}

function rulesPart({ rules, digest }: Rules['current']): string {
  return rules.length === 0
    ? ''
    : `,"Rules":${JSON.stringify({ Digest: digest, Count: rules.length })}`;
}

/** `GET /debug/{key}` */
export function debugOne(limiter: Limiter): RequestHandler<{ key: string }> {
  return async (request, response) => {
    // The status is always 200. A key that is too long to exist is not found.
    const { key } = request.params;
    const instance = await limiter.inspect(key);
    const body: Instance | MissingInstance = instance
      ? toBody(instance)
      : { Key: key, Found: false };
    sendJson(response, 200, body, BROWSER_HEADERS);
  };
}

function toBody({
  key,
  limits,
  approved,
  held,
  denied,
  waiting,
  pausedMillis,
  further,
}: InstanceState): Instance {
  return {
    Key: key,
    Config: {
      WindowMillis: limits.windowMillis,
      MaxRequestsPerWindow: limits.maxRequests,
      MaxRequestsInQueue: limits.maxRequestsInQueue,
    },
    NumApprovedThisWindow: approved,
    NumDeniedThisWindow: denied,
    NumWaiting: waiting,
    ...(held > 0 ? { NumHeld: held } : {}),
    ...(pausedMillis > 0 ? { PausedMillis: pausedMillis } : {}),
    ...(further ? { Limits: further.map(toLimit) } : {}),
    Found: true,
  };
}

function toLimit({ name, windowMillis, counts, maximum, approved }: FurtherState) {
  return {
    Name: name,
    WindowMillis: windowMillis,
    ...(counts === 'hits' ? { MaxHitsPerWindow: maximum } : { MaxRequestsPerWindow: maximum }),
    NumApprovedThisWindow: approved,
  };
}
