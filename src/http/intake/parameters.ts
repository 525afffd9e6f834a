import { z } from 'zod';

import { BOUNDS } from '../../limiter/bounds.js';
import type { CheckRequest } from '../../limiter/limiter.js';
import { wholeNumber, yesOrNo } from '../../text-schemas.js';
import { HttpError } from '../replies/http-error.js';

/** The query of a check. A parameter that is given twice arrives as a list, which no schema takes. */
const querySchema = z.object({
  canWait: yesOrNo().optional(),
  maxRequests: wholeNumber(BOUNDS.maxRequests).optional(),
  maxRequestsInQueue: wholeNumber(BOUNDS.maxRequestsInQueue).optional(),
});

const PARAMETERS = Object.keys(querySchema.shape);

/**
 * @param key as the router has percent-decoded it
 * @throws HttpError 400 where it is too long
 */
export function parseKey(key: string): string {
  const bytes = Buffer.byteLength(key);
  const { min, max } = BOUNDS.keyBytes;
  if (bytes >= min && bytes <= max) return key;
  throw new HttpError(400, `key must be ${min} to ${max} bytes of UTF-8, not ${bytes}`, key);
}

/**
 * The check that a request asks for.
 * @throws HttpError 400 that names the parameter with a wrong value
 */
export function parseCheck(key: string, query: Readonly<Record<string, unknown>>): CheckRequest {
  const parsedKey = parseKey(key);
  refuseMisspelt(query, parsedKey);
  const result = querySchema.safeParse(query);
  if (result.success) {
    const { canWait = false, maxRequests, maxRequestsInQueue } = result.data;
    return { key: parsedKey, canWait, maxRequests, maxRequestsInQueue };
  }
  const issue = result.error.issues[0];
  const name = String(issue?.path[0]);
  const must = Array.isArray(query[name]) ? 'be given once' : `be ${issue?.message ?? 'valid'}`;
  throw new HttpError(400, `${name} must ${must}`, parsedKey);
}

/** `canwait` or `maxRequests[]` would be a limit that somebody believes to have set. */
function refuseMisspelt(query: Readonly<Record<string, unknown>>, key: string): void {
  for (const name of Object.keys(query)) {
    const meant = name.replace(/\[.*$/, '').toLowerCase();
    const known = PARAMETERS.find((parameter) => parameter.toLowerCase() === meant);
    if (known !== undefined && known !== name) {
      throw new HttpError(400, `${known} must be spelt so, not ${name}`, key);
    }
  }
}
