import { ERRORS } from '../../../src/service/errors.js';
import { FURTHER_NAMES, KNOWN } from './declared.js';
import type { RawResponse } from './response-reader.js';

/** The statuses in docs/errors-and-headers.md, without 500. */
const DOCUMENTED = new Set([
  200, 303, 400, 401, 403, 404, 405, 408, 413, 414, 415, 417, 429, 431, 503,
]);
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

/** The limits of keys that have several. */
const LIMITS = [KNOWN, ...FURTHER_NAMES];

/** Checks the rules for every answer to any request. @returns the flaws of this answer */
export function flawsOf({ status, headers, body }: RawResponse, isHead = false): string[] {
  const flaws: string[] = [];
  if (!DOCUMENTED.has(status)) flaws.push(`status ${status}`);
  if (!headers.get('x-correlation-id')) flaws.push('no X-Correlation-ID');
  if (headers.get('x-content-type-options') !== 'nosniff') flaws.push('no nosniff');
  if (status === 405 && !headers.has('allow')) flaws.push('405 without Allow');
  if (status === 401 && !headers.has('www-authenticate'))
    flaws.push('401 without WWW-Authenticate');
  if (status === 429 && !/^[1-9]\d*$/.test(headers.get('retry-after') ?? '')) {
    flaws.push('429 without Retry-After');
  }
  if (status === 401 || status === 403) flaws.push(...flawsOfRefusal(headers));
  const contentType = headers.get('content-type');
  // The reasons of /readyz are plain text.
  if (status >= 400 && status !== 503 && contentType !== 'application/json') {
    flaws.push(`an error of type ${String(contentType)}`);
  }
  if (!isHead && contentType === 'application/json') flaws.push(...flawsOfJson(status, body));
  return flaws;
}

/** A rejected caller must not learn anything about a key. */
function flawsOfRefusal(headers: RawResponse['headers']): string[] {
  return [...headers.keys()]
    .filter((name) => /^(x-)?ratelimit|^x-sluice/.test(name))
    .map((name) => `${name} of a rejected request`);
}

function flawsOfJson(status: number, body: string): string[] {
  const parsed = parse(body);
  if (parsed === undefined) return ['a body that is not a JSON object'];
  if (status >= 400) {
    const others = Object.keys(parsed).filter((name) => !['error', 'key', 'code'].includes(name));
    const { limit, code } = parsed;
    const isDenial = status === 429 && typeof limit === 'string' && LIMITS.includes(limit);
    const unknown = others.filter((name) => !(isDenial && name === 'limit'));
    if (unknown.length > 0) return [`an error with ${unknown.join()}`];
    if (typeof code !== 'string' || !(code in ERRORS)) return ['an error without its code'];
    return typeof parsed.error === 'string' ? [] : ['an error without "error"'];
  }
  const { request_id: requestId } = parsed;
  if (requestId === undefined) return [];
  return typeof requestId === 'string' && UUID.test(requestId) ? [] : ['an invalid request_id'];
}

/** The body, which must be a JSON object. */
export function parse(body: string): Record<string, unknown> | undefined {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(body, 'latin1').toString());
    return typeof parsed === 'object' && parsed !== null
      ? (parsed as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
