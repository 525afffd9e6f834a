import type {
  ZodOpenApiComponentsObject,
  ZodOpenApiResponseObject,
  ZodOpenApiResponsesObject,
} from 'zod-openapi';

import { type ErrorCode, errorRow, ERRORS } from '../../service/errors.js';
import { httpErrorOf, httpStatusOf } from '../replies/error-statuses.js';
import { FOR_BROWSERS, type HeaderName, headersOf } from './answer-headers.js';
import { errorBody, problemBody } from '../../api/answers.js';
import { PROBLEM_TYPE } from '../replies/error-body.js';

type Status = `${1 | 2 | 3 | 4 | 5}${string}`;

const CODES = Object.keys(ERRORS) as ErrorCode[];

/** The table of errors as examples, by their codes. Their texts have the placeholders of the table. */
export const errorExamples: NonNullable<ZodOpenApiComponentsObject['examples']> =
  Object.fromEntries(
    CODES.map((code) => {
      const { message, when } = ERRORS[code];
      const { body } = httpErrorOf(code);
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
export function errorResponses(codes: readonly ErrorCode[]): ZodOpenApiResponsesObject {
  const statuses = new Set(codes.map((code) => httpStatusOf(code)));
  const responses: ZodOpenApiResponsesObject = {};
  for (const status of statuses) {
    const [first, ...others] = codes.filter((code) => httpStatusOf(code) === status);
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
    const { retryAfter } = errorRow(code);
    const { header } = httpErrorOf(code);
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
  const isText = (code: ErrorCode) => httpErrorOf(code).body === 'plain text';
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
