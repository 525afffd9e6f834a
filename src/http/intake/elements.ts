import type { z } from 'zod';

import type { CheckOrder } from '../../limiter/limiter.js';
import type { AskedCheck } from '../../service/deciding/lists-of-checks.js';
import { parseKey } from '../../service/deciding/parameter-rights.js';
import { invalidParameter, type ServiceError } from '../../service/errors.js';
import { checkElement, type ReleaseElement, releaseElement } from '../../api/bulk-schemas.js';
import { MAX_ELEMENT_BYTES, TOO_LONG } from './json-array.js';
import { demandHoldOf, quoted } from './parameters.js';

/** Parameters that only a check alone has. */
const WAITING: readonly string[] = ['canWait', 'maxWaitMillis', 'keepMillis'];

/**
 * The check that an element of a bulk request asks for.
 * @param order of the request
 * @throws ServiceError INVALID_PARAMETER or INVALID_KEY_LENGTH
 */
export function parseCheckElement(element: unknown, order: CheckOrder): AskedCheck {
  // Nearly all elements have only a key. The schema takes ten times as long.
  const plainKey = soleKeyOf(element);
  if (plainKey !== undefined) return { key: parseSentKey(plainKey), canWait: false, order };
  const { key, ...overrides } = parse(checkElement, element);
  demandHoldOf(overrides);
  return { key: parseSentKey(key), canWait: false, order, ...overrides };
}

/**
 * The release that an element of a bulk request asks for.
 * @throws ServiceError INVALID_PARAMETER or INVALID_KEY_LENGTH
 */
export function parseReleaseElement(element: unknown): ReleaseElement {
  const release = parse(releaseElement, element);
  parseSentKey(release.key);
  return release;
}

/** @returns undefined unless the element is an object with a text as `key`, and nothing else */
function soleKeyOf(element: unknown): string | undefined {
  if (typeof element !== 'object' || element === null) return undefined;
  for (const name in element) if (name !== 'key') return undefined;
  const { key } = element as { key?: unknown };
  return typeof key === 'string' ? key : undefined;
}

/** @throws ServiceError INVALID_PARAMETER or INVALID_KEY_LENGTH */
export function parseSentKey(key: string): string {
  // Keys with different halves of a surrogate pair would become one key.
  if (!key.isWellFormed()) throw invalidParameter('key', 'be text that UTF-8 can encode');
  return parseKey(key);
}

function parse<Schema extends z.ZodType>(schema: Schema, element: unknown): z.infer<Schema> {
  if (element === TOO_LONG) {
    throw invalidParameter('an element', `be at most ${MAX_ELEMENT_BYTES} bytes of JSON`);
  }
  const result = schema.safeParse(element);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  if (issue?.code === 'unrecognized_keys') throw unknownField(issue.keys[0] ?? '');
  const parameter = issue?.path[0] ?? 'an element';
  throw invalidParameter(String(parameter), `be ${issue?.message ?? 'valid'}`);
}

function unknownField(name: string): ServiceError {
  const why = WAITING.includes(name) ? ': a check that may wait is sent alone' : '';
  return invalidParameter(quoted(name), `be left out${why}`);
}
