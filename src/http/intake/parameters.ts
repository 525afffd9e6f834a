import { z } from 'zod';

import { BOUNDS } from '../../limiter/bounds.js';
import type { CheckRequest } from '../../limiter/limiter.js';
import { wholeNumber, yesOrNo } from '../../config/text-schemas.js';
import { parseKey } from '../../service/keys.js';
import { serviceError } from '../../service/service-error.js';

/** The query of a check. A parameter that is given twice arrives as a list, which no schema accepts. */
export const querySchema = z.object({
  canWait: yesOrNo().optional(),
  maxRequests: wholeNumber(BOUNDS.maxRequests).optional(),
  maxRequestsInQueue: wholeNumber(BOUNDS.maxRequestsInQueue).optional(),
  maxWaitMillis: wholeNumber(BOUNDS.maxWaitMillis).optional(),
});

/** Names and values, as parsed by Express. */
export type Query = Readonly<Record<string, unknown>>;

export const NO_PARAMETERS: Query = {};

/** The names of the parameters of a check. */
export const PARAMETERS: readonly string[] = Object.keys(querySchema.shape);

/**
 * The check that a request asks for.
 * @throws ServiceError INVALID_KEY_LENGTH, MISSPELT_PARAMETER or INVALID_PARAMETER
 */
export function parseCheck(key: string, query: Query): CheckRequest {
  const parsedKey = parseKey(key);
  if (query === NO_PARAMETERS) return { key: parsedKey, canWait: false };
  rejectMisspelt(query);
  const result = querySchema.safeParse(query);
  if (result.success) {
    const { canWait = false, maxWaitMillis, ...overrides } = result.data;
    if (!canWait) {
      if (maxWaitMillis === undefined) return { key: parsedKey, canWait, ...overrides };
      const must = 'be used with canWait=true';
      throw serviceError('INVALID_PARAMETER', { parameter: 'maxWaitMillis', must });
    }
    return { key: parsedKey, canWait, maxWaitMillis, ...overrides };
  }
  const issue = result.error.issues[0];
  const parameter = String(issue?.path[0]);
  const must = Array.isArray(query[parameter])
    ? 'be given once'
    : `be ${issue?.message ?? 'valid'}`;
  throw serviceError('INVALID_PARAMETER', { parameter, must });
}

/**
 * Rejects a bulk request with the parameters of a check: its sender believes that it has set a limit.
 * @throws ServiceError INVALID_PARAMETER
 */
export function rejectParameters(query: Query): void {
  rejectMisspelt(query);
  const parameter = PARAMETERS.find((name) => name in query);
  if (parameter === undefined) return;
  throw serviceError('INVALID_PARAMETER', { parameter, must: 'be left out of the URL' });
}

/** Rejects `canwait` or `maxRequests[]`: the sender believes that it has set a limit. */
function rejectMisspelt(query: Query): void {
  for (const given of Object.keys(query)) {
    const intended = given.replace(/\[.*$/, '').toLowerCase();
    const parameter = PARAMETERS.find((name) => name.toLowerCase() === intended);
    if (parameter !== undefined && parameter !== given) {
      throw serviceError('MISSPELT_PARAMETER', { parameter, given });
    }
  }
}
