import * as querystring from 'node:querystring';

import { z } from 'zod';

import { requestFields } from '../../api/bulk-schemas.js';
import { requestId, shortText } from '../../common/schemas.js';
import { nearestName } from '../../common/texts.js';
import { wholeNumber, yesOrNo } from '../../config/text-schemas.js';
import { BOUNDS } from '../../limiter/bounds.js';
import type { Amendment, Asked, RemainingReport } from '../../limiter/limiter.js';
import { isHeld, LABELS, type RequestTerms } from '../../limiter/request.js';
import type { AskedCheck, AskedPeek } from '../../service/deciding/lists-of-checks.js';
import { invalidParameter, serviceError } from '../../service/errors.js';
import { parseKey } from '../../service/deciding/parameter-rights.js';

const MAX_NAME_LENGTH = 64;

/** The query of a check that is sent. A parameter that is given twice arrives as a list, which no schema accepts. */
const checkSchema = z.object({
  requestId: requestId().optional(),
  canWait: yesOrNo().optional(),
  maxRequests: wholeNumber(BOUNDS.maxRequests).optional(),
  defaultMaxRequests: wholeNumber(BOUNDS.maxRequests).optional(),
  maxRequestsInQueue: wholeNumber(BOUNDS.maxRequestsInQueue).optional(),
  maxWaitMillis: wholeNumber(BOUNDS.maxWaitMillis).optional(),
  keepMillis: wholeNumber(BOUNDS.keepMillis).optional(),
  windowMillis: wholeNumber(BOUNDS.windowMillis).optional(),
  ...requestFields(wholeNumber),
});

/** The query of a check, or of a peek at what one would get. */
export const querySchema = checkSchema.extend({ peek: yesOrNo().optional() });

/** The parameters that no peek has: it changes nothing, and keeps nothing. */
const NOT_OF_PEEK = [
  'requestId',
  'keepMillis',
  'maxRequests',
  'defaultMaxRequests',
  'maxRequestsInQueue',
  'windowMillis',
  ...LABELS,
] as const;

/** The query of an amendment. Without parameters it renews a hold. */
export const amendmentSchema = z.object({
  hits: wholeNumber(BOUNDS.amendedHits).optional(),
  holdMillis: wholeNumber(BOUNDS.holdMillis).optional(),
});

/** Empty for the checks that name none. */
const group = shortText({ ...BOUNDS.groupBytes, min: 0 }).optional();

export const pauseSchema = z.object({
  pauseMillis: wholeNumber(BOUNDS.pauseMillis),
  canShorten: yesOrNo().optional(),
  group,
});

export const reportSchema = z.object({
  remaining: wholeNumber(BOUNDS.remaining),
  resetMillis: wholeNumber(BOUNDS.resetMillis).optional(),
  limit: z.string().optional(),
  group,
});

/** Names and values, as parsed by Express. */
export type Query = Readonly<Record<string, unknown>>;

export const NO_PARAMETERS: Query = {};

export const PARAMETERS: readonly string[] = Object.keys(querySchema.shape);
const AMENDMENT_PARAMETERS: readonly string[] = Object.keys(amendmentSchema.shape);
const REPORT_PARAMETERS: readonly string[] = Object.keys(reportSchema.shape);
const PAUSE_PARAMETERS: readonly string[] = Object.keys(pauseSchema.shape);
const CHANGE_PARAMETERS = [...new Set([...PAUSE_PARAMETERS, ...REPORT_PARAMETERS])];
const OF_PAUSE_ALONE = PAUSE_PARAMETERS.filter((name) => !REPORT_PARAMETERS.includes(name));
const OF_REPORT_ALONE = REPORT_PARAMETERS.filter((name) => !PAUSE_PARAMETERS.includes(name));

/**
 * The check that a request asks for.
 * @throws ServiceError INVALID_KEY_LENGTH, UNKNOWN_PARAMETER or INVALID_PARAMETER
 */
export function parseCheck(key: string, query: Query): AskedCheck {
  const parsedKey = parseKey(key);
  if (query === NO_PARAMETERS) return { key: parsedKey, canWait: false };
  rejectUnknown(query, PARAMETERS);
  const { canWait = false, maxWaitMillis, keepMillis, ...others } = parse(checkSchema, query);
  demandHoldOf(others);
  if (keepMillis !== undefined) {
    demandWith('keepMillis', 'canWait=true', canWait);
    demandWith('keepMillis', 'requestId', others.requestId !== undefined);
  }
  if (canWait) {
    // The approval is kept by a hold of that time.
    const kept = keepMillis ? Math.max(BOUNDS.holdMillis.min, keepMillis) : undefined;
    return { key: parsedKey, canWait, maxWaitMillis, keepMillis: kept, ...others };
  }
  demandWith('maxWaitMillis', 'canWait=true', maxWaitMillis === undefined);
  return { key: parsedKey, canWait, ...others };
}

/** @throws ServiceError INVALID_PARAMETER unless the other parameter is given */
function demandWith(parameter: string, other: string, isGiven: boolean): void {
  if (!isGiven) throw invalidParameter(parameter, `be used with ${other}`);
}

/**
 * Rejects a check with a holder, or another label, and no hold: it would not be shown.
 * @throws ServiceError INVALID_PARAMETER
 */
export function demandHoldOf(terms: RequestTerms): void {
  for (const label of LABELS) {
    demandWith(label, 'holdMillis', terms[label] === undefined || isHeld(terms));
  }
}

/**
 * The peek that a request asks for. Whether the check could wait makes no difference.
 * @returns undefined if it asks for a check
 * @throws ServiceError as `parseCheck`
 */
export function parsePeek(key: string, query: Query): AskedPeek | undefined {
  if (query.peek === undefined) return undefined;
  const parsedKey = parseKey(key);
  rejectUnknown(query, PARAMETERS);
  const { peek, hits, holdMillis, lane, group, ...others } = parse(querySchema, query);
  if (!peek) return undefined;
  const parameter = NOT_OF_PEEK.find((name) => others[name] !== undefined);
  if (parameter === undefined) return { key: parsedKey, hits, holdMillis, lane, group };
  throw invalidParameter(parameter, 'be left out with peek=true');
}

/** What a request changes about an approval. @throws ServiceError UNKNOWN_PARAMETER or INVALID_PARAMETER */
export function parseAmendment(query: Query): Amendment {
  rejectUnknown(query, AMENDMENT_PARAMETERS);
  return parse(amendmentSchema, query);
}

/**
 * A pause, or a report of what remains of a limit.
 * @throws ServiceError UNKNOWN_PARAMETER or INVALID_PARAMETER
 */
export function parseKeyChange(
  query: Query,
): { readonly pause: Omit<Asked<'pause'>, 'key'> } | { readonly report: RemainingReport } {
  rejectUnknown(query, CHANGE_PARAMETERS);
  if (!Object.keys(query).some((name) => OF_REPORT_ALONE.includes(name))) {
    const { pauseMillis: millis, ...others } = parse(pauseSchema, query);
    return { pause: { millis, ...others } };
  }
  const parameter = OF_PAUSE_ALONE.find((name) => query[name] !== undefined);
  if (parameter === undefined) return { report: parse(reportSchema, query) };
  throw invalidParameter(parameter, 'be left out if remaining, resetMillis or limit is given');
}

/**
 * Rejects a request that has no parameters: its sender believes that it has set something.
 * @throws ServiceError INVALID_PARAMETER
 */
export function rejectParameters(query: Query): void {
  const [parameter] = Object.keys(query);
  if (parameter === undefined) return;
  throw invalidParameter(quoted(parameter), 'be left out of the URL');
}

/** Rejects `canwait`, `maxRequests[]` or `maxRequest`: the sender believes that it has set a limit. */
function rejectUnknown(query: Query, known: readonly string[]): void {
  const given = Object.keys(query).find((name) => !known.includes(name));
  if (given === undefined) return;
  // `maxRequests[]` is how some clients write a list.
  const name = quoted(given).replace(/\[.*$/, '');
  const parameter = nearestName(name, known) ?? '';
  throw serviceError('UNKNOWN_PARAMETER', { parameter, given: quoted(given) });
}

/** @throws ServiceError INVALID_PARAMETER */
function parse<Schema extends z.ZodType>(schema: Schema, query: Query): z.infer<Schema> {
  const result = schema.safeParse(query);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const parameter = String(issue?.path[0]);
  const isList = Array.isArray(query[parameter]);
  throw invalidParameter(parameter, `be ${isList ? 'given once' : (issue?.message ?? 'valid')}`);
}

/** The part of a name that an error quotes: a sender may choose any name. */
export function quoted(name: string): string {
  return name.slice(0, MAX_NAME_LENGTH);
}

/** Commas in quotes do not separate preferences. */
const PREFERENCES = /(?:[^",]|"(?:[^"\\]|\\.)*")+/g;
const WAIT = /^\s*wait\s*=\s*(?:(\d{1,15})|"(\d{1,15})")\s*(?:;.*)?$/i;
/** No valid header is longer, and a header of many quotes would take long to parse. */
const MOST_CHARACTERS = 256;

/**
 * The seconds of `wait=N` in a Prefer header: how long the client is ready to wait for the answer. Undefined if there
 * is no such preference, or it can't be met: a preference may be ignored.
 * https://www.rfc-editor.org/rfc/rfc7240#section-4.3
 */
export function preferredWaitSeconds(prefer: string | undefined): number | undefined {
  if (prefer === undefined || prefer.length > MOST_CHARACTERS) return undefined;
  for (const preference of prefer.match(PREFERENCES) ?? []) {
    const [, plain, quoted] = WAIT.exec(preference) ?? [];
    const seconds = Number(plain ?? quoted ?? NaN);
    // If there are several, the first one counts.
    if (!Number.isNaN(seconds)) {
      return seconds * 1000 <= BOUNDS.maxWaitMillis.max ? seconds : undefined;
    }
  }
  return undefined;
}

/** By default the parser ignores parameters beyond a limit. The length of the URL bounds them already. */
const OPTIONS = { maxKeys: 0, decodeURIComponent: decode };
/**
 * In place of a text that is not UTF-8: half of a surrogate pair, which no parameter takes. Node would decode different
 * bytes to the same replacement characters, so that two groups with names in Latin-1 would become one.
 */
const NOT_UTF8 = '\ud800';
const REPLACEMENT = '\ufffd';

export function parseQuery(query: string): Query {
  return querystring.parse(query, '&', '=', OPTIONS);
}

/** A `%` that encodes nothing stands for itself. */
function decode(text: string): string {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    const decoded = querystring.unescape(text);
    return decoded.includes(REPLACEMENT) ? NOT_UTF8 : decoded;
  }
}
