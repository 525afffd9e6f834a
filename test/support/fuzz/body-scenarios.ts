import { COSTLY_BODIES } from '../costly-bodies.js';
import { flawsOf } from './answer-rules.js';
import { expectStatus, type Session } from './scenarios.js';
import { mightyHeaders } from './target.js';

const TYPES = ['application/json', 'application/x-www-form-urlencoded', 'APPLICATION/JSON;x=y'];
const WITHOUT_PARAMETERS = ['', '{}', ' { }\r\n', '[]', 'null'];
const WITH_PARAMETERS = [
  '{"hits":5}', 'hits=5', '{', '[{}]', '\0', '\xff', ' '.repeat(5000), '{}'.repeat(5000),
]; // prettier-ignore

/** A check whose body may have parameters in it, perhaps with a request before it. */
export async function bodyParameters(session: Session): Promise<void> {
  const { random, requests, target } = session;
  const isMistaken = random.chance(0.5);
  const body = random.pick(isMistaken ? WITH_PARAMETERS : WITHOUT_PARAMETERS);
  const key = requests.freshKey();
  const { Authorization: token } = mightyHeaders(target);
  const client = await session.open();
  const before = random.chance(0.5) ? 'GET /healthz HTTP/1.1\r\nHost: t\r\n\r\n' : '';
  const lines = [
    `${random.pick(['GET', 'POST'])} /rate/${encodeURIComponent(key)} HTTP/1.1`,
    'Host: t',
    `Content-Type: ${random.pick(TYPES)}`,
    ...(token ? [`Authorization: ${token}`] : []),
    `Content-Length: ${body.length}`,
  ];
  await client.send(`${before}${lines.join('\r\n')}\r\n\r\n${body}`, random);
  const index = before === '' ? 0 : 1;
  await client.answers(index + 1);
  const statuses = isMistaken ? [400] : [200];
  expectStatus(session, client, { statuses, checkOf: key, isHead: false }, index);
  await client.part(random.pick(['half-close', 'reset', 'destroy']));
}

/**
 * Bodies that cost much, on several connections. Requests on another connection are answered meanwhile; how many, depends
 * on the machine. `json-array.test.ts` shows that bodies are read in slices.
 */
export async function costlyBodies(session: Session): Promise<void> {
  const { random, target } = session;
  const what = random.pick(Object.keys(COSTLY_BODIES));
  const body = COSTLY_BODIES[what]!;
  const headers = Object.entries(mightyHeaders(target)).map(
    ([name, text]) => `${name}: ${text}\r\n`,
  );
  const bytes =
    `POST /rate HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n${headers.join('')}` +
    `Content-Length: ${body.length}\r\n\r\n${body}`;
  const progress = { isAnswered: false };
  const answered = Promise.all(
    Array.from({ length: 3 }, async () => {
      const client = await session.open();
      client.sendWhole(bytes);
      if (!(await client.answers(1))) session.violated(`no answer to ${what}`, '');
      await client.part('destroy');
      for (const response of client.reader.responses) {
        session.saw(response.status);
        for (const flaw of flawsOf(response)) session.violated(flaw, what, response);
        if (![200, 400, 503].includes(response.status)) session.violated('not 200 or 400', what);
      }
    }),
  ).finally(() => {
    progress.isAnswered = true;
  });
  const other = await session.open();
  for (let sent = 1; !progress.isAnswered; sent += 1) {
    other.sendWhole('GET /healthz HTTP/1.1\r\nHost: t\r\n\r\n');
    if (!(await other.answers(sent))) {
      session.violated('no answer beside costly bodies', what);
      break;
    }
  }
  await answered;
  await other.part('destroy');
  for (const response of other.reader.responses) {
    if (response.status !== 200) session.violated('not 200 beside costly bodies', what, response);
  }
}
