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
