import type { Random } from '../chaos/random.js';
import { until } from '../until.js';
import { flawsOf, parse } from './answer-rules.js';
import { mutate } from './mutator.js';
import type { Parting, RawClient } from './raw-client.js';
import type { ModelledRequest, RequestGenerator } from './request-generator.js';
import type { RawResponse } from './response-reader.js';
import { mightyHeaders, type Target, waitingFor } from './target.js';

/** The tools of a scenario, and its reports. */
export interface Session {
  readonly target: Target;
  readonly random: Random;
  readonly requests: RequestGenerator;
  readonly open: (isHead?: (index: number) => boolean) => Promise<RawClient>;
  /** Counts an answer. */
  readonly saw: (status: number) => void;
  readonly violated: (what: string, sent: string, response?: RawResponse) => void;
}

const PARTINGS: readonly Parting[] = ['half-close', 'reset', 'destroy'];

/** Several requests at once on one connection, all answered as expected and in their order. */
export async function pipeline(session: Session): Promise<void> {
  const { random, requests } = session;
  const batch: ModelledRequest[] = [];
  for (let left = random.whole(1, 6); left > 0 && !batch.at(-1)?.isLast; left -= 1) {
    const request = requests.any();
    // This request would end the connection before the others are answered.
    const endsIt = request.isUnreadable || (isLong(request) && batch.some(mayWait));
    if (!endsIt || batch.length === 0) batch.push(request);
  }
  const client = await session.open((index) => batch[index]?.isHead ?? false);
  if (batch[0]?.isUnreadable) client.sendWhole(textOf(batch));
  else await client.send(textOf(batch), random);
  await expectAnswers(session, client, batch);
  if (batch.at(-1)?.isLast) await client.closed;
  else await client.part(random.pick(PARTINGS));
  if (client.reader.unread !== '') session.violated('more than was asked for', client.sent);
}

/** Requests with some bytes changed. Only the rules for every answer apply. */
export async function mutation(session: Session): Promise<void> {
  const { random, requests, target } = session;
  const corpus: ModelledRequest[] = [];
  while (corpus.length === 0 || random.chance(0.5)) {
    const request = requests.any();
    // The end of an answer to HEAD is unknown if the method may have been changed.
    if (!request.isHead) corpus.push(request);
    if (random.chance(0.2)) {
      const key = requests.freshKey();
      const query = 'canWait=true&maxRequests=1';
      corpus.push(requests.check(key, query), requests.check(key, query));
    }
  }
  const client = await session.open();
  await client.send(mutate(textOf(corpus), random), random);
  target.keys.sent(client.sent);
  // By then some requests have an answer, and some not.
  for (let more = random.pick([0, 1, 5, 50]); more > 0; more -= 1) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  if (random.chance(0.5)) await Promise.race([client.answers(1), client.part('half-close')]);
  await client.part(random.pick(PARTINGS));
  // The unread rest may be a cut answer, since this side gave the connection up.
  for (const response of client.reader.responses) expectSound(session, client.sent, response);
  if (client.reader.problem) session.violated(client.reader.problem, client.sent);
}

/** Waiting checks with others behind them on their connections. Some clients disconnect, the others get their turn. */
export async function queue(session: Session): Promise<void> {
  const { random, requests, target } = session;
  const key = requests.freshKey();
  let holder = await soleAnswer(session, requests.check(key, 'maxRequests=1'));
  const waiters: RawClient[] = [];
  for (let count = random.whole(1, 4); count > 0; count -= 1) {
    const client = await session.open();
    await client.send(waitingBytes(session, key), random);
    target.keys.sent(client.sent);
    waiters.push(client);
    await until(async () => (await waitingFor(target, key)) === waiters.length);
  }
  const staying: RawClient[] = [];
  for (const client of waiters) {
    if (random.chance(0.5)) staying.push(client);
    else await client.part(random.pick(PARTINGS));
  }
  await until(async () => (await waitingFor(target, key)) === staying.length);
  for (const [index, client] of staying.entries()) {
    await soleAnswer(session, requests.release(key, holder ?? '', [200]));
    if (!(await client.answers(1))) session.violated('a waiter was forgotten', client.sent);
    holder = requestIdOf(client.reader.responses[0]);
    const early = staying.slice(index + 1).find(({ reader }) => reader.responses.length > 0);
    if (early) session.violated('a waiter was served before its turn', early.sent);
  }
  for (const client of staying) {
    await client.part(random.pick(PARTINGS));
    for (const response of client.reader.responses) expectSound(session, client.sent, response);
    if (client.reader.problem) session.violated(client.reader.problem, client.sent);
  }
}

/** No more is approved than a vendor says remains of a limit, and a release gives none of it back. */
export async function report(session: Session): Promise<void> {
  const { random, requests, target } = session;
  const key = requests.freshKey();
  const maximum = 9;
  const check = requests.check(key, `maxRequests=${maximum}`);
  const [before, said] = [random.whole(1, 3), random.whole(0, maximum + 1)];
  let approved: string | undefined;
  for (let left = before; left > 0; left -= 1) approved = await soleAnswer(session, check);
  const remaining = Math.min(said, maximum - before);
  const answer = await answerOf(session, requests.report(key, said));
  const { remaining: answered } = (answer && parse(answer.body)) ?? {};
  if (answered !== remaining) session.violated(`a report of ${said} is answered`, key, answer);
  if (said < maximum - before && random.chance(0.5)) {
    await answerOf(session, requests.release(key, approved ?? '', [200]));
    target.keys.released(key);
  }
  for (let left = remaining; left > 0; left -= 1) await soleAnswer(session, requests.check(key));
  await answerOf(session, requests.check(key, '', [429]));
}

/** Answers pile up behind a waiting check until Node stops reading: a disconnect must still be noticed. */
export async function pileUp(session: Session): Promise<void> {
  const { random, requests, target } = session;
  const key = requests.freshKey();
  await soleAnswer(session, requests.check(key, 'maxRequests=1'));
  const client = await session.open();
  const [waiting, long] = [requests.check(key, 'canWait=true'), requests.metrics()];
  if (!waiting.isLast) {
    await client.send(waiting.bytes + long.bytes.repeat(random.whole(1, 4)), random);
    await until(async () => (await waitingFor(target, key)) === 1 || client.isClosed);
    client.sendWhole(requests.check(requests.freshKey()).bytes);
  }
  target.keys.sent(client.sent);
  await client.part(random.pick(PARTINGS));
  await until(async () => (await waitingFor(target, key)) === 0);
}

/** A part of a request, or a request without its body. */
export async function abandoned(session: Session): Promise<void> {
  const { random, requests, target } = session;
  const client = await session.open();
  if (random.chance(0.3)) {
    const key = requests.freshKey();
    const bytes = `POST /rate/${encodeURIComponent(key)} HTTP/1.1\r\nHost: t\r\n`;
    const length = random.pick(['Content-Length: 9007199254740991', 'Transfer-Encoding: chunked']);
    const { Authorization: token } = mightyHeaders(target);
    const authorization = token ? `Authorization: ${token}\r\n` : '';
    await client.send(`${bytes}${authorization}${length}\r\n\r\n`, random);
    await client.answers(1);
    expectStatus(session, client, { statuses: [200], checkOf: key, isHead: false });
  } else {
    const { bytes } = requests.any();
    await client.send(bytes.slice(0, random.whole(0, bytes.indexOf('\r\n\r\n') + 3)), random);
    for (let ticks = random.whole(0, 100); ticks > 0; ticks -= 1) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  await client.part(random.pick(PARTINGS));
}

/** Odd targets: any valid answer is accepted. */
export async function oddTarget(session: Session): Promise<void> {
  const { random, requests, target } = session;
  const mark = requests.freshKey();
  const path = `/rate/${encodeURIComponent(mark)}`;
  const odd = random.pick([
    `http://[${path}`,
    `http://xn--a${path}`,
    `http://a:99999999${path}`,
    `http://${path}`,
    `http://t?${path}`,
    `${path}#fragment`,
    `${path}\\x#`,
    `/rate/\xc3\xa9${encodeURIComponent(mark)}`,
    `${path}\xa0`,
    `//t${path}`,
    `x:${path}`,
  ]);
  const { Authorization: token } = mightyHeaders(target);
  const authorization = token ? `\r\nAuthorization: ${token}` : '';
  const hosts = random.pick(['Host: t', 'Host: t\r\nHost: u', 'Host:', 'Host: [']);
  const bytes = `${random.pick(['GET', 'POST'])} ${odd} HTTP/1.1\r\n${hosts}${authorization}\r\n\r\n`;
  const client = await session.open();
  client.sendWhole(bytes);
  target.keys.sent(client.sent);
  if (await client.answers(1)) expectSound(session, bytes, client.reader.responses[0]!);
  else session.violated(client.reader.problem ?? 'no answer', bytes);
  await client.part(random.pick(PARTINGS));
}

function waitingBytes({ random, requests }: Session, key: string): string {
  const batch = [requests.check(key, 'canWait=true')];
  for (let more = random.pick([0, 0, 1, 3]); more > 0 && !batch.at(-1)!.isLast; more -= 1) {
    const request = requests.any();
    if (!request.isHead && !request.isUnreadable && !isLong(request)) batch.push(request);
  }
  return textOf(batch);
}

/** @returns the request id, if there is one */
async function soleAnswer(session: Session, request: ModelledRequest): Promise<string | undefined> {
  return requestIdOf(await answerOf(session, request));
}

/** The answer to a request that is alone on its connection. */
export async function answerOf(
  session: Session,
  request: ModelledRequest,
): Promise<RawResponse | undefined> {
  const client = await session.open();
  await client.send(request.bytes, session.random);
  await expectAnswers(session, client, [request]);
  await client.part('destroy');
  return client.reader.responses[0];
}

async function expectAnswers(
  session: Session,
  client: RawClient,
  batch: readonly ModelledRequest[],
): Promise<void> {
  await client.answers(batch.length);
  for (const [index, request] of batch.entries()) expectStatus(session, client, request, index);
  if (client.reader.problem) session.violated(client.reader.problem, client.sent);
}

export function expectStatus(
  session: Session,
  client: RawClient,
  request: Pick<
    ModelledRequest,
    'statuses' | 'checkOf' | 'hits' | 'changeOf' | 'reportOf' | 'isHead' | 'correlationId'
  >,
  index = 0,
): void {
  const { statuses, checkOf, hits, changeOf, reportOf, isHead, correlationId } = request;
  const response = client.reader.responses[index];
  if (!response) {
    session.violated(`no answer to request ${index}`, client.sent);
    return;
  }
  expectSound(session, client.sent, response, isHead);
  const { status, headers, body } = response;
  if (checkOf !== undefined) {
    // A check that passes because of shadow mode is counted as denied.
    const isDenied = headers.get('x-sluice-shadow') === 'denied';
    session.target.keys.answered(checkOf, isDenied ? 429 : status, hits);
  }
  if (changeOf !== undefined && status === 200) session.target.keys.changed(changeOf);
  if (reportOf !== undefined) session.target.keys.reported(reportOf);
  if (!statuses.includes(status)) {
    session.violated(`not ${statuses.join()} to request ${index}`, client.sent, response);
  }
  if (correlationId !== undefined && headers.get('x-correlation-id') !== correlationId) {
    session.violated(`X-Correlation-ID not echoed to request ${index}`, client.sent, response);
  }
  const named = isHead || checkOf === undefined ? undefined : parse(body)?.key;
  if (named !== undefined && named !== checkOf) {
    session.violated('an answer for another key', client.sent, response);
  }
}

function expectSound(session: Session, sent: string, response: RawResponse, isHead = false): void {
  session.saw(response.status);
  for (const flaw of flawsOf(response, isHead)) session.violated(flaw, sent, response);
}

export function requestIdOf(response: RawResponse | undefined): string | undefined {
  const requestId = response && parse(response.body)?.request_id;
  return typeof requestId === 'string' ? requestId : undefined;
}

/** Whether its answer is so long that Node stops reading the connection while the answer waits for earlier ones. */
function isLong({ bytes }: ModelledRequest): boolean {
  return / \/(metrics|debug) /.test(bytes);
}

function mayWait({ bytes }: ModelledRequest): boolean {
  return /canWait=(true|1)/.test(bytes);
}

function textOf(batch: readonly ModelledRequest[]): string {
  return batch.map(({ bytes }) => bytes).join('');
}
