import type {
  ZodOpenApiComponentsObject,
  ZodOpenApiContentObject,
  ZodOpenApiOperationObject,
  ZodOpenApiResponseObject,
  ZodOpenApiResponsesObject,
} from 'zod-openapi';

import { errorBody, problemBody } from '../../api/answers.js';
import type { Settings } from '../../config/settings.js';
import type { EntryScope } from '../../service/callers/access.js';
import { type ErrorCode, errorRow, ERRORS } from '../../service/errors.js';
import { PROBLEM_TYPE } from '../replies/error-body.js';
import { FOR_BROWSERS, type HeaderName, headersOf } from './answer-headers.js';
import { ofRequest } from './parameters.js';

type Status = `${1 | 2 | 3 | 4 | 5}${string}`;

const CODES = Object.keys(ERRORS) as ErrorCode[];

/** The table of errors as examples, by their codes. Their texts have the placeholders of the table. */
export const errorExamples: NonNullable<ZodOpenApiComponentsObject['examples']> =
  Object.fromEntries(
    CODES.map((code) => {
      const { message, when } = ERRORS[code];
      const { body } = errorRow(code);
      const key = body === 'without key' ? {} : { key: '{key}' };
      const value = { error: message, ...key, code };
      const example = { summary: code, description: when };
      return [code, { ...example, value: body === 'plain text' ? message : value }];
    }),
  );

/** The answer to each error, by its code. @param decided the headers of a denial */
export function responsesByCode(
  decided: readonly HeaderName[],
): Record<ErrorCode, ZodOpenApiResponseObject> {
  const entries = CODES.map((code) => [code, errorResponse([code], decided)] as const);
  return Object.fromEntries(entries) as Record<ErrorCode, ZodOpenApiResponseObject>;
}

/** The answers of an operation with these errors, by their statuses. The examples of an answer are its codes. */
function errorResponses(codes: readonly ErrorCode[]): ZodOpenApiResponsesObject {
  const statuses = new Set(codes.map((code) => ERRORS[code].status));
  const responses: ZodOpenApiResponsesObject = {};
  for (const status of statuses) {
    const [first, ...others] = codes.filter((code) => ERRORS[code].status === status);
    if (first === undefined) continue;
    responses[`${status}` as Status] =
      others.length === 0
        ? { $ref: `#/components/responses/${first}` }
        : errorResponse([first, ...others]);
  }
  return responses;
}

function errorResponse(
  codes: readonly ErrorCode[],
  decided: readonly HeaderName[] = [],
): ZodOpenApiResponseObject {
  const isDenial = codes.includes('RATE_LIMIT_EXCEEDED');
  const headers = new Set<HeaderName>(isDenial ? decided : FOR_BROWSERS);
  for (const code of codes) {
    const { retryAfter, header } = errorRow(code);
    if (retryAfter !== undefined) headers.add('Retry-After');
    if (header !== undefined) headers.add(header);
  }
  return {
    description: codes.map((code) => `- \`${code}\`: ${ERRORS[code].when}`).join('\n'),
    headers: headersOf([...headers]),
    content: contentOf(codes),
  };
}

function contentOf(codes: readonly ErrorCode[]): NonNullable<ZodOpenApiResponseObject['content']> {
  const isText = (code: ErrorCode) => errorRow(code).body === 'plain text';
  const [texts, objects] = [codes.filter(isText), codes.filter((code) => !isText(code))];
  return {
    ...(objects.length > 0 && {
      'application/json': { schema: errorBody, examples: examplesOf(objects) },
      [PROBLEM_TYPE]: { schema: problemBody },
    }),
    ...(texts.length > 0 && {
      'text/plain': { schema: { type: 'string' }, examples: examplesOf(texts) },
    }),
  };
}

function examplesOf(codes: readonly ErrorCode[]) {
  return Object.fromEntries(
    codes.map((code) => [code, { $ref: `#/components/examples/${code}` }] as const),
  );
}

/** The settings that the document depends on. */
export type DescribedSettings = Pick<
  Settings,
  | 'RATE_LIMIT_HEADERS'
  | 'AUTH_TOKENS_FILE'
  | 'DEBUG_ENDPOINTS'
  | 'PORT'
  | 'ADMIN_PORT'
  | 'TLS_CERT_FILE'
>;

/** The description of an operation. The rest follows from the settings and the tables. */
export interface Described {
  readonly operationId: string;
  readonly tags: readonly [string];
  readonly summary: string;
  readonly description?: string;
  /** What its callers enter with, if there are tokens. */
  readonly scope?: EntryScope;
  readonly requestParams?: NonNullable<ZodOpenApiOperationObject['requestParams']>;
  readonly requestBody?: NonNullable<ZodOpenApiOperationObject['requestBody']>;
  readonly answer: {
    /** 200 if it is left out. */
    readonly status?: 303;
    readonly description: string;
    readonly headers: readonly HeaderName[];
    readonly content: ZodOpenApiContentObject;
  };
  /** The errors of this operation, besides those of any request. */
  readonly errors?: readonly ErrorCode[];
  readonly more?: ZodOpenApiResponsesObject;
}

const OF_ANY: readonly ErrorCode[] = [
  'INVALID_TARGET',
  'HOST_MISSING',
  'HOST_REPEATED',
  'HOST_NOT_ALLOWED',
  'MALFORMED_REQUEST',
  'REQUEST_TIMEOUT',
  'URL_TOO_LONG',
  'HEADERS_TOO_LARGE',
  'INTERNAL_ERROR',
];
const WITH_TOKENS: readonly ErrorCode[] = ['TOKEN_REQUIRED', 'TOKEN_UNKNOWN', 'SCOPE_MISSING'];

/** Returns a function that makes operations from their descriptions, by the settings. */
export function operationMaker({
  AUTH_TOKENS_FILE,
}: DescribedSettings): (described: Described) => ZodOpenApiOperationObject {
  const hasTokens = AUTH_TOKENS_FILE !== undefined;
  return ({ tags, scope, requestParams = ofRequest, answer, more, ...described }) => {
    const { errors = [], ...rest } = described;
    const { status = 200, ...answered } = answer;
    const isGuarded = hasTokens && scope !== undefined;
    const ofKey = 'path' in requestParams ? (['KEY_NOT_ALLOWED'] as const) : [];
    const ofTokens = isGuarded ? [...WITH_TOKENS, ...ofKey] : [];
    // Without tokens, pages of other origins may read the metrics.
    const isForAllPages = hasTokens || scope === undefined || scope === 'metrics';
    const ofPages = isForAllPages ? [] : (['ORIGIN_NOT_ALLOWED'] as const);
    return {
      ...rest,
      tags: [...tags],
      requestParams,
      ...(isGuarded && { security: [{ bearer: [scope === 'metrics' ? 'debug' : scope] }] }),
      responses: {
        [`${status}`]: { ...answered, headers: headersOf(answer.headers) },
        ...errorResponses([...errors, ...ofTokens, ...ofPages, ...OF_ANY]),
        ...more,
      },
    };
  };
}
