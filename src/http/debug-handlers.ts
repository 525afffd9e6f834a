import type { RequestHandler, Response } from 'express';

import type { Instance, Limiter } from '../limiter/limiter.js';
import { sendJson, writeHead } from './reply.js';

/** `GET /debug`: streamed, so that any number of keys takes little memory. */
export function debugAll(limiter: Limiter): RequestHandler {
  return async (_request, response) => {
    const instances = limiter.list()[Symbol.asyncIterator]();
    // Asked for before the status goes out, so that a store that can't be reached is a 503.
    let next = await instances.next();
    writeHead(response, 200, 'application/json');
    response.write('{"Instances":{');
    for (let separator = ''; !next.done && !response.closed; separator = ',') {
      const { key } = next.value;
      const entry = `${separator}${JSON.stringify(key)}:${JSON.stringify(toBody(next.value))}`;
      if (!response.write(entry)) await drained(response);
      next = await instances.next();
    }
    response.end('}}');
  };
}

/** `GET /debug/{key}` */
export function debugOne(limiter: Limiter): RequestHandler<{ key: string }> {
  return async (request, response) => {
    // Always 200, says the contract: a key too long to exist is merely not found.
    const { key } = request.params;
    const instance = await limiter.inspect(key);
    sendJson(response, 200, instance ? toBody(instance) : { Key: key, Found: false });
  };
}

function toBody({ key, limits, approved, denied, waiting }: Instance): object {
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
    Found: true,
  };
}

async function drained(response: Response): Promise<void> {
  await new Promise<void>((resolve) => {
    const end = (): void => {
      response.off('drain', end).off('close', end);
      resolve();
    };
    response.on('drain', end).on('close', end);
  });
}
