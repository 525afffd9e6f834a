import { z } from 'zod';

import { wholeNumber } from '../../../config/text-schemas.js';
import { BOUNDS } from '../../../limiter/bounds.js';
import { parseSentKey } from '../../intake/elements.js';
import type { Query } from '../../intake/parameters.js';
import { invalidParameter } from '../../../service/errors.js';
import { KEY_STATES } from './key-survey.js';

/** Nobody reads more rows than this, and each row is read again at each poll. */
const LIMIT = { min: 1, max: 200 };
const DEFAULT_LIMIT = 50;
const ORDERS = ['need', 'rate'] as const;

const listSchema = z.object({
  /** A state that the keys are in; any if it is left out. */
  state: z.enum(KEY_STATES, `one of ${KEY_STATES.join(', ')}`).optional(),
  /** Which keys come first: those that need a person, or those with the most approvals a second. */
  order: z.enum(ORDERS, `one of ${ORDERS.join(', ')}`).default('need'),
  limit: wholeNumber(LIMIT).default(DEFAULT_LIMIT),
  /** A text that the keys contain, in any case of letters. */
  search: z.string('a text').max(BOUNDS.keyBytes.max, 'no longer than a key').default(''),
});

/** The names of the parameters of the dashboard's paths, besides those of a check. */
export const UI_PARAMETERS: readonly string[] = [
  ...Object.keys(listSchema.shape),
  'key',
  'request_id',
  'handle',
];

export type ListQuery = z.infer<typeof listSchema>;

/** @throws ServiceError INVALID_PARAMETER */
export function parseListQuery(query: Query): ListQuery {
  const result = listSchema.safeParse(query);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  throw invalidParameter(String(issue?.path[0]), `be ${issue?.message ?? 'valid'}`);
}

/**
 * The key in a query: browsers fold `..` in a path.
 * @throws ServiceError INVALID_PARAMETER or INVALID_KEY_LENGTH
 */
export function parseKeyIn(query: Query): string {
  return parseSentKey(parseText(query, 'key'));
}

/** @throws ServiceError INVALID_PARAMETER */
export function parseText(query: Query, parameter: string): string {
  const value = query[parameter];
  if (typeof value === 'string') return value;
  throw invalidParameter(parameter, 'be given once');
}
