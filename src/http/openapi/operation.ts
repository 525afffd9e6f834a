import type {
  ZodOpenApiContentObject,
  ZodOpenApiOperationObject,
  ZodOpenApiResponsesObject,
} from 'zod-openapi';

import type { Settings } from '../../config/settings.js';
import type { Scope } from '../../service/callers/caller.js';
import type { ErrorCode } from '../../service/errors.js';
import { type HeaderName, headersOf } from './answer-headers.js';
import { errorResponses } from './error-responses.js';
import { ofRequest } from './parameters.js';

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
  /** The scope that its callers' tokens need, if there are tokens. */
  readonly scope?: Scope;
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
  /** The errors that it has only with tokens, besides those of any request and of any key. */
  readonly errorsWithTokens?: readonly ErrorCode[];
  /** Without tokens, pages of other origins may use it, although it has a scope. */
  readonly isForAllPages?: boolean;
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
const OF_KEYS_WITH_TOKENS: readonly ErrorCode[] = ['KEY_NOT_ALLOWED'];
const WITHOUT_TOKENS: readonly ErrorCode[] = ['ORIGIN_NOT_ALLOWED'];

/** Returns a function that makes operations from their descriptions, by the settings. */
export function operationMaker({
  AUTH_TOKENS_FILE,
}: DescribedSettings): (described: Described) => ZodOpenApiOperationObject {
  const hasTokens = AUTH_TOKENS_FILE !== undefined;
  return ({ tags, scope, requestParams = ofRequest, answer, more, ...described }) => {
    const { errors = [], errorsWithTokens = [], isForAllPages = false, ...rest } = described;
    const { status = 200, ...answered } = answer;
    const isGuarded = hasTokens && scope !== undefined;
    const ofKey = 'path' in requestParams ? OF_KEYS_WITH_TOKENS : [];
    const ofTokens = isGuarded ? [...WITH_TOKENS, ...ofKey, ...errorsWithTokens] : [];
    const ofPages = hasTokens || scope === undefined || isForAllPages ? [] : WITHOUT_TOKENS;
    return {
      ...rest,
      tags: [...tags],
      requestParams,
      ...(isGuarded && { security: [{ bearer: [scope] }] }),
      responses: {
        [`${status}`]: { ...answered, headers: headersOf(answer.headers) },
        ...errorResponses([...errors, ...ofTokens, ...ofPages, ...OF_ANY]),
        ...more,
      },
    };
  };
}
