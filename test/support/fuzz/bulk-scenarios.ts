import { checkResult } from '../../../src/api/bulk-schemas.js';
import type { Random } from '../chaos/random.js';
import { bearer } from '../tokens.js';
import { flawsOf } from './answer-rules.js';
import { answerTo, firstAnswer } from './answer-to.js';
import { type Caller, SORTS } from './declared.js';
import { mutate } from './mutator.js';
import type { RawResponse } from './response-reader.js';
import type { Session } from './scenarios.js';
import { mightyHeaders } from './target.js';

/** An element of a bulk request, and its possible statuses. */
interface ModelledElement {
  readonly element: unknown;
  readonly key: string;
  readonly statuses: readonly number[];
}

const PARAMETERS = [
  {}, {}, {}, { maxRequests: 10 }, { maxRequests: 11 }, { maxRequestsInQueue: 5 }, { maxRequestsInQueue: 6 },
  { maxRequests: 10, maxRequestsInQueue: 0 }, { holdMillis: 7_200_000 }, { holdMillis: 7_200_001 },
  { maxRequests: 10, hits: 1, holdMillis: 7_200_000 }, { windowMillis: 14_400_000 }, { windowMillis: 14_400_001 },
  { maxRequests: 10, windowMillis: 14_400_000 }, { lane: 'batch' }, { lane: 'interactive' }, { lane: 'unknown' }, { group: 'gold' },
  { group: 'a:b^2' },
]; // prettier-ignore
/** Unknown fields of an element, and wrong values. */
const WRONG: readonly object[] = [
  { requestId: 'x' }, { requestId: 7 }, { requestId: null },
  { canWait: true }, { canWait: null }, { maxrequests: 1 }, { maxRequests: '1' }, { maxRequests: 0 },
  { maxRequests: 1.5 }, { maxRequests: null }, { maxRequestsInQueue: -1 }, { maxRequestsInQueue: 1e99 },
  { holdMillis: 999 }, { holdMillis: '7200000' }, { holdMillis: null }, { holdMillis: 86_400_001 }, { hits: 0 },
  { windowMillis: 0 }, { windowMillis: '14400000' }, { windowMillis: null }, { windowMillis: 31_622_400_001 },
  { lane: null }, { lane: ['batch'] }, { lane: 5 }, { group: '' }, { group: 7 }, { group: '\0' }, { group: 'x'.repeat(65) },
  { pauseMillis: 0 }, { constructor: 1 }, { toString: [] }, { request_id: 'x' }, { '': {} }, { key: '' }, { key: null }, { key: {} },
  { key: 'x'.repeat(513) }, { key: '\udfff' },
]; // prettier-ignore
const NO_OBJECTS = [
  'null',
  '5',
  '"key"',
  '[]',
  '[[[[]]]]',
  'true',
  '1e999',
  '{"__proto__":{"key":"x"}}',
];
/** Bodies that are rejected as a whole. */
const NO_CALLS = [
  '', ' ', '{}', 'null', '[', '[{"key":"x"}', '[{"key":"x"},]', '[{"key":"x"}]]', "[{'key':'x'}]", '[NaN]',
  '[{"key":"\xff"}]', '\xef\xbb\xbf[]', `[${'1,'.repeat(1000)}1]`, '['.repeat(100_000), '[]\0', '[{"key":"\n"}]',
]; // prettier-ignore

/** A bulk request with some invalid checks, sent in pieces, and with another request behind it. */
export async function manyChecks(session: Session): Promise<void> {
  const { random, target } = session;
  const { declared } = target;
  const callers = declared?.callers.filter(({ scopes }) => scopes.includes('check'));
  const caller = callers && random.pick(callers);
  const elements = Array.from({ length: random.pick([0, 1, 2, 5, 50]) }, () =>
    modelled(session, caller),
  );
  const body = `[${elements.map(({ element }) => written(element)).join(random.pick([',', ' ,\n']))}]`;
  const headers = caller ? bearer(caller) : {};
  const answer = await answerToCall(session, 'POST', bytesOf(body), headers);
  if (!answer) return;
  const results = resultsIn(answer);
  if (answer.status !== 200 || results?.length !== elements.length) {
    session.violated('a call is not answered with its results', body, answer);
    return;
  }
  for (const [index, { key, statuses }] of elements.entries()) {
    const parsed = checkResult.safeParse(results[index]);
    if (!parsed.success || !statuses.includes(parsed.data.status)) {
      session.violated(`result ${index} is not ${statuses.join()}`, body, answer);
      continue;
    }
    const { status } = parsed.data;
    const isDenied = 'shadow' in parsed.data;
    if (key !== '') target.keys.answered(key, isDenied ? 429 : status);
  }
}

/** Invalid bodies, and releases with some bytes changed. They count nothing, and the connection goes on. */
export async function noCall(session: Session): Promise<void> {
  const { random, requests, target } = session;
  const headers = mightyHeaders(target);
  if (random.chance(0.5)) {
    const method = random.pick(['POST', 'DELETE']);
    const answer = await answerToCall(session, method, random.pick(NO_CALLS), headers);
    if (answer && answer.status !== 400) session.violated('not a 400', answer.body, answer);
    return;
  }
  const releases = Array.from({ length: random.pick([1, 5, 50]) }, () => ({
    key: requests.freshKey(),
    request_id: random.pick(['x', '', '\0', '00000000-0000-4000-8000-000000000000']),
  }));
  const body = mutate(bytesOf(JSON.stringify(releases)), random);
  const answer = await answerToCall(session, 'DELETE', body, headers);
  if (answer && answer.status !== 200 && answer.status !== 400) {
    session.violated('neither 200 nor 400', body, answer);
  }
}

function modelled(session: Session, caller: Caller | undefined): ModelledElement {
  const { random, requests, target } = session;
  if (random.chance(0.1)) return { element: random.pick(NO_OBJECTS), key: '', statuses: [400] };
  const key = requests.freshKey(random.pick(SORTS));
  if (random.chance(0.2)) {
    return { element: { key, ...random.pick(WRONG) }, key, statuses: [400] };
  }
  const parameters = random.pick(PARAMETERS);
  const query = Object.entries(parameters)
    .map(([name, value]) => `${name}=${value}`)
    .join('&');
  const asked = {
    scope: 'check',
    key,
    query,
    statuses: firstAnswer(key, query),
    isJudgedByLimits: true,
  } as const;
  const { declared } = target;
  const statuses = declared && caller ? answerTo(asked, caller, declared) : asked.statuses;
  return { element: { key, ...parameters }, key, statuses };
}

/** An element as JSON. A text is JSON already. */
function written(element: unknown): string {
  return typeof element === 'string' ? element : JSON.stringify(element);
}

/** One character for each byte. */
function bytesOf(text: string): string {
  return Buffer.from(text).toString('latin1');
}

/** The answer to a bulk request, if it is valid and the next request on its connection is also answered. */
async function answerToCall(
  session: Session,
  method: string,
  body: string,
  headers: Readonly<Record<string, string>>,
): Promise<RawResponse | undefined> {
  const { random } = session;
  const lines = Object.entries({ Host: 't', 'Content-Type': 'application/json', ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  const client = await session.open();
  await client.send(
    `${method} /rate HTTP/1.1\r\n${lines.join('')}${framed(body, random)}` +
      'GET /healthz HTTP/1.1\r\nHost: t\r\n\r\n',
    random,
  );
  if (!(await client.answers(2))) session.violated('no answer', client.sent);
  await client.part(random.pick(['half-close', 'reset', 'destroy']));
  for (const response of client.reader.responses) {
    session.saw(response.status);
    for (const flaw of flawsOf(response)) session.violated(flaw, client.sent, response);
  }
  if (client.reader.problem) session.violated(client.reader.problem, client.sent);
  return client.reader.responses[0];
}

/** The end of a head, and the body. */
function framed(body: string, random: Random): string {
  if (random.chance(0.7)) return `Content-Length: ${body.length}\r\n\r\n${body}`;
  const half = Math.floor(body.length / 2);
  const chunks = [body.slice(0, half), body.slice(half)].filter((chunk) => chunk !== '');
  const text = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join('');
  return `Transfer-Encoding: chunked\r\n\r\n${text}0\r\n\r\n`;
}

function resultsIn({ body }: RawResponse): readonly unknown[] | undefined {
  try {
    const results: unknown = JSON.parse(Buffer.from(body, 'latin1').toString());
    return Array.isArray(results) ? results : undefined;
  } catch {
    return undefined;
  }
}
