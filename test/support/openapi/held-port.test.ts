import type { oas31 } from 'zod-openapi';

import { parseSettings } from '../../../src/config/settings.js';
import { openApiDocument } from '../../../src/http/openapi/document.js';
import type { SentAnswer } from './answer-checker.js';
import { HeldPort } from './held-port.js';

type Document = oas31.OpenAPIObject;

const ALWAYS = { 'x-correlation-id': 'an id', 'x-content-type-options': 'nosniff' };
const JSON_TYPE = { 'content-type': 'application/json' };
const FOR_BROWSERS = {
  ...ALWAYS,
  ...JSON_TYPE,
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'",
  'referrer-policy': 'no-referrer',
};

function answerWith(
  status: number,
  body: object,
  headers: Readonly<Record<string, string>>,
): SentAnswer {
  const text = JSON.stringify(body);
  return { method: 'POST', status, headers: new Map(Object.entries(headers)), body: text };
}

const APPROVAL = answerWith(
  200,
  { request_id: 'a4e5d9b1-206d-4df5-bff1-7f4662b31529' },
  { ...ALWAYS, ...JSON_TYPE, 'cache-control': 'no-store', ratelimit: '"default";r=9;t=1' },
);
const DENIAL = answerWith(
  429,
  { error: 'rate limit exceeded', key: 'report', code: 'RATE_LIMIT_EXCEEDED' },
  { ...ALWAYS, ...JSON_TYPE, 'cache-control': 'no-store', 'retry-after': '1' },
);
const REFUSAL = answerWith(
  400,
  { error: 'canWait must be 1', key: 'report', code: 'INVALID_PARAMETER' },
  FOR_BROWSERS,
);
const NO_PATH = answerWith(
  404,
  { error: 'no such path: /report', code: 'PATH_NOT_FOUND' },
  FOR_BROWSERS,
);

function flawsOf(target: string, answer: SentAnswer, change?: (document: Document) => void) {
  const document = structuredClone(openApiDocument(parseSettings({})));
  change?.(document);
  return new HeldPort(document, 'all').flawsOf(target, answer);
}

function withHeaders(answer: SentAnswer, more: Readonly<Record<string, string>>): SentAnswer {
  return { ...answer, headers: new Map([...answer.headers, ...Object.entries(more)]) };
}

test.each([
  ['/rate/report', APPROVAL],
  ['/rate/report?canWait=true', DENIAL],
  ['/rate/report?canWait=2', REFUSAL],
  ['/report', NO_PATH],
])('an answer to %s matches the document', (target, answer) => {
  expect(flawsOf(target, answer)).toEqual([]);
});

describe('the comparison finds', () => {
  test.each<[string, (document: Document) => void]>([
    [
      'that a status is not in the document',
      ({ paths }) => delete paths!['/rate/{key}']!.post!.responses!['429'],
    ],
    [
      'that a status is marked as never sent',
      ({ paths }) => {
        const { post } = paths!['/rate/{key}']!;
        Object.assign(post!.responses!, { 429: { description: 'Never.', 'x-never-sent': true } });
      },
    ],
    ['that a path is not in the document', ({ paths }) => delete paths!['/rate/{key}']],
    ['that a method is not in the document', ({ paths }) => delete paths!['/rate/{key}']!.post],
    [
      'that an error is not in the document',
      ({ components }) => (components!.examples!.RATE_LIMIT_EXCEEDED = { value: { error: 'no' } }),
    ],
    [
      'that a field is not in the document',
      ({ components }) => delete (components!.schemas!.Error as oas31.SchemaObject).properties!.key,
    ],
    [
      'that a header is not in the document',
      ({ components }) =>
        delete (components!.responses!.RATE_LIMIT_EXCEEDED as oas31.ResponseObject).headers![
          'Retry-After'
        ],
    ],
  ])('%s', (_what, change) => {
    expect(flawsOf('/rate/report', DENIAL, change)).not.toEqual([]);
  });

  test.each<[string, SentAnswer]>([
    ['an unknown header', withHeaders(DENIAL, { 'x-other': 'value' })],
    ['a header without its form', withHeaders(DENIAL, { 'retry-after': 'soon' })],
    ['a missing header', { ...DENIAL, headers: new Map(Object.entries(JSON_TYPE)) }],
    ['another type', withHeaders(DENIAL, { 'content-type': 'text/html' })],
    ['an invalid id', { ...APPROVAL, body: '{"request_id":"a"}' }],
    [
      'another message',
      { ...REFUSAL, body: '{"error":"something else","code":"INVALID_PARAMETER"}' },
    ],
    ['no code', { ...DENIAL, body: '{"error":"rate limit exceeded"}' }],
    [
      'an unknown field',
      { ...DENIAL, body: '{"error":"rate limit exceeded","code":"RATE_LIMIT_EXCEEDED","x":1}' },
    ],
  ])('that an answer has %s', (_what, answer) => {
    expect(flawsOf('/rate/report', answer)).not.toEqual([]);
  });

  test('that an unknown path answers', () => {
    expect(flawsOf('/report', APPROVAL)).not.toEqual([]);
  });
});
