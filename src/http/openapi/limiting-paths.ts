import type { ZodOpenApiPathsObject } from 'zod-openapi';
import { z } from 'zod';

import { checkElement, MAX_ELEMENTS, releaseElement } from '../../api/bulk-schemas.js';
import type { ErrorCode } from '../../service/errors.js';
import { ALWAYS, type HeaderName, headersOf, ofDecisions } from './answer-headers.js';
import {
  amendment,
  approval,
  checkResults,
  endedHold,
  keyChange,
  peeked,
  releaseResults,
  requestStatus,
  waitingBody,
} from '../../api/answers.js';
import { type Described, type DescribedSettings, operationMaker } from './operation.js';
import { ofAmendment, ofCheck, ofHoldEnd, ofKeyChange, ofRelease, ofStatus } from './parameters.js';

export const CHECKS = 'Checks';
export const MANY = 'Bulk requests';

/** The errors of any operation on a key. */
const OF_KEY: readonly ErrorCode[] = [
  'INVALID_PARAMETER',
  'INVALID_KEY_LENGTH',
  'INVALID_ENCODING',
  'STORE_UNAVAILABLE',
];
const OF_CHECK: readonly ErrorCode[] = [
  ...OF_KEY,
  'UNKNOWN_PARAMETER',
  'PARAMETERS_IN_BODY',
  'TOO_MANY_HITS',
  'WINDOW_NOT_SETTABLE',
  'OVERRIDE_FORBIDDEN',
  'HOLD_FORBIDDEN',
  'OVERRIDE_TOO_LARGE',
  'KEY_UNKNOWN',
  'REQUEST_ID_USED',
  'PLACE_TAKEN_OVER',
  'PLACE_WITHDRAWN',
  'REQUEST_ID_CONFLICT',
  'RATE_LIMIT_EXCEEDED',
  'STORE_FULL',
  'KEY_FULL',
  'SHUTTING_DOWN',
  'HANDED_OVER',
  'TOO_MANY_WAITERS',
];
const OF_RELEASE: readonly ErrorCode[] = [...OF_KEY, 'REQUEST_NOT_FOUND', 'STORE_FULL'];
const OF_MANY: readonly ErrorCode[] = [
  'INVALID_PARAMETER',
  'INVALID_BODY',
  'BODY_TOO_LARGE',
  'UNSUPPORTED_BODY',
  'NO_ROOM_FOR_BODY',
];

const NOT_CACHED = [...ALWAYS, 'Cache-Control'] as const;

export function limitingPaths(settings: DescribedSettings): ZodOpenApiPathsObject {
  const operation = operationMaker(settings);
  const onKey = (described: Omit<Described, 'tags'>) => operation({ tags: [CHECKS], ...described });
  const decided = ofDecisions(settings);
  const check = {
    tags: [CHECKS],
    summary: 'Ask for permission under a key',
    description:
      'The first check of a key creates it. With `peek=true`, nothing is counted, and the answer says when a check would have its turn. With tokens, `maxRequests`, `maxRequestsInQueue` and `windowMillis` also need the scope `configure`, and `defaultMaxRequests` does if it sets the maximum.',
    scope: 'check',
    requestParams: ofCheck,
    answer: {
      description:
        'Approved, at once or after a wait. With `peek=true`: a check would be approved now.',
      headers: [...decided, 'X-Sluice-Shadow'],
      content: { 'application/json': { schema: z.union([approval, peeked]) } },
    },
    errors:
      settings.AUTH_TOKENS_FILE === undefined
        ? OF_CHECK
        : [...OF_CHECK, 'TOO_MANY_WAITERS_OF_CALLER'],
    more: {
      202: {
        description:
          'With `keepMillis` and `Prefer: wait=N`: not decided after N seconds. The request waits on, and its place is kept for `keepMillis`.',
        headers: headersOf([...NOT_CACHED, 'Preference-Applied']),
        content: { 'application/json': { schema: waitingBody } },
      },
      499: {
        description:
          'The client disconnected while it waited. Only the log has this status; no client sees it.',
        'x-never-sent': true,
      },
    },
  } as const satisfies Omit<Described, 'operationId'>;
  const many = (element: z.ZodType) => ({
    tags: [MANY] as const,
    requestBody: {
      required: true,
      content: { 'application/json': { schema: z.array(element).max(MAX_ELEMENTS) } },
    },
    errors: OF_MANY,
  });
  return {
    '/rate/{key}': {
      post: operation({ ...check, operationId: 'check' }),
      get: operation({ ...check, operationId: 'checkByGet' }),
      put: onKey({
        operationId: 'pause',
        summary: 'Pause a key, or report what a vendor says remains of a limit',
        description:
          "With `pauseMillis`, nobody is approved until the pause ends, and waiters keep their places. With `remaining`, no more than that is approved until the vendor's limit resets; a report never makes room. Without `requests_can_pause` in a rule of the key, the token also needs the scope `configure`.",
        scope: 'check',
        requestParams: ofKeyChange,
        answer: jsonAnswer('Paused, not paused any more, or reported.', keyChange),
        errors: [...OF_KEY, 'UNKNOWN_PARAMETER', 'KEY_UNKNOWN', 'STORE_FULL', 'KEY_FULL'],
      }),
    },
    '/rate/{key}/{requestId}': {
      get: onKey({
        operationId: 'requestStatus',
        summary: 'Say what a request is now',
        description:
          'Whether it waits, where, and until when at least; or whether it is approved, and until when it is held. Nothing changes, and nothing is kept for longer. A request that waits is found by a request id that its caller has chosen.',
        scope: 'check',
        requestParams: ofStatus,
        answer: jsonAnswer('The request waits, or is approved.', requestStatus, NOT_CACHED),
        errors: [...OF_KEY, 'REQUEST_NOT_FOUND', 'CHECK_HAS_REQUEST_ID', 'SHUTTING_DOWN'],
      }),
      delete: onKey({
        operationId: 'release',
        summary: 'Release an approval that still counts',
        description:
          'Also withdraws a request that waits, if its caller has chosen the request id. Its check is then answered 409.',
        scope: 'release',
        requestParams: ofRelease,
        answer: jsonAnswer('Released, or withdrawn.', approval),
        errors: OF_RELEASE,
      }),
      put: onKey({
        operationId: 'amend',
        summary: 'Correct the hits of an approval that still counts, or renew its hold',
        description:
          'Without parameters it renews the hold of the approval. Fewer hits make room, which the queue gets. More hits may exceed the maximum: then nobody is approved until there is room again. A correction to 0 hits also needs the scope `release`.',
        scope: 'check',
        requestParams: ofAmendment,
        answer: jsonAnswer('Corrected, renewed, or both.', amendment),
        errors: [
          ...OF_RELEASE,
          'UNKNOWN_PARAMETER',
          'HOLD_FORBIDDEN',
          'OVERRIDE_TOO_LARGE',
          'CORRECTION_TOO_LARGE',
        ],
      }),
    },
    '/rate/{key}/holders/{handle}': {
      delete: onKey({
        operationId: 'endHold',
        summary: 'End the hold of another caller',
        description:
          'Releases the held approval. Its holder notices at the next renewal, which is answered 404; its work may go on until then.',
        scope: 'configure',
        requestParams: ofHoldEnd,
        answer: jsonAnswer('Ended.', endedHold),
        errors: [...OF_KEY, 'HOLDER_NOT_FOUND', 'STORE_FULL'],
      }),
    },
    '/rate': {
      post: operation({
        ...many(checkElement),
        operationId: 'checkMany',
        summary: 'Many checks in one request',
        description:
          'An invalid element gets an error as its result, and does not affect the others. A check that may wait is sent alone.',
        scope: 'check',
        answer: jsonAnswer(
          'A result for each element, in the same order.',
          checkResults,
          NOT_CACHED,
        ),
      }),
      delete: operation({
        ...many(releaseElement),
        operationId: 'releaseMany',
        summary: 'Many releases in one request',
        scope: 'release',
        answer: jsonAnswer('A result for each element, in the same order.', releaseResults),
      }),
    },
  };
}

function jsonAnswer(
  description: string,
  schema: z.ZodType,
  headers: readonly HeaderName[] = ALWAYS,
): Described['answer'] {
  return { description, headers, content: { 'application/json': { schema } } };
}
