import { ratePath } from '../../support/http-client.js';
import { openConnection, requestText } from '../../support/raw-http.js';
import { uniqueKey } from '../../support/unique-key.js';
import { debugState } from '../../support/debug-state.js';
import { useApp } from '../../support/use-apps.js';

const FORM = 'application/x-www-form-urlencoded';
const JSON_TYPE = 'application/json';

const app = useApp(() => ({ MAX_IN_FLIGHT_PER_CONNECTION: '1', WINDOW_MILLIS: '3600000' }));

/** A check with a body. */
function checkText(
  { key = uniqueKey(), query = '', method = 'POST', type = '' },
  body: string,
  headers: Record<string, string> = {},
): string {
  const length = { 'Content-Length': String(Buffer.byteLength(body)) };
  const ofType = type === '' ? {} : { 'Content-Type': type };
  return requestText(method, ratePath(key) + query, { ...length, ...ofType, ...headers }) + body;
}

/** The answer to a request that is the last on its connection. */
async function answerTo(text: string): Promise<string> {
  const connection = await openConnection(app.url);
  connection.write(text);
  await connection.closed;
  return connection.received;
}

const CLOSE = { Connection: 'close' };

describe.each([
  ['without parameters in its URL', ''],
  ['with one in its URL', '?canWait=false'],
])('a check %s', (_what, query) => {
  test.each([
    ['a form', 'POST', FORM, 'maxRequests=1'],
    ['a form with a charset', 'POST', `${FORM}; charset=UTF-8`, 'maxRequests=1'],
    ['a form in parts', 'POST', 'multipart/form-data; boundary=x', '--x\r\n\r\n1\r\n--x--\r\n'],
    ['an object', 'POST', JSON_TYPE, '{"hits":5}'],
    ['an array', 'POST', JSON_TYPE, '[{"key":"a"}]'],
    ['text that is not JSON', 'POST', JSON_TYPE, 'hits=5'],
    ['a form of 100 KiB', 'POST', FORM, 'a'.repeat(100 * 1024)],
    ['white space of 100 KiB', 'POST', JSON_TYPE, ' '.repeat(100 * 1024)],
    ['an object, as a GET', 'GET', JSON_TYPE, '{"canWait":true}'],
  ])('is rejected and counts nothing if its body is %s', async (_kind, method, type, body) => {
    const key = uniqueKey();
    const answer = await answerTo(checkText({ key, query, method, type }, body, CLOSE));

    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain('{"error":"parameters go in the URL, not in the body","key":');
    expect(await debugState(app.url, key)).toEqual({ Key: key, Found: false });
  });

  test.each([
    ['empty', JSON_TYPE, ''],
    ['an empty form', FORM, ''],
    ['an empty object', JSON_TYPE, '{ }\n'],
    ['an empty array', JSON_TYPE, '[]'],
    ['null', JSON_TYPE, 'null'],
    ['text', 'text/plain', 'maxRequests=1'],
    ['of no type', '', 'maxRequests=1'],
    ['large, of another type', 'application/octet-stream', 'a'.repeat(100 * 1024)],
    ['of a type that begins alike', 'application/json-patch+json', '{"hits":5}'],
  ])('is decided if its body is %s', async (_kind, type, body) => {
    expect(await answerTo(checkText({ query, type }, body, CLOSE))).toMatch(/^HTTP\/1\.1 200 /);
  });
});

test('chunks of a body are put together', async () => {
  const chunked = { 'Transfer-Encoding': 'chunked', 'Content-Type': JSON_TYPE, ...CLOSE };
  const head = requestText('POST', ratePath(uniqueKey()), chunked);

  expect(await answerTo(`${head}1\r\n{\r\n1\r\n}\r\n0\r\n\r\n`)).toMatch(/^HTTP\/1\.1 200 /);
  expect(await answerTo(`${head}1\r\n{\r\n7\r\n"a":1}\r\n0\r\n\r\n`)).toMatch(/^HTTP\/1\.1 400 /);
});

test('requests that are deferred on their connection are rejected for their bodies too, in their order', async () => {
  const key = uniqueKey();
  const connection = await openConnection(app.url);
  connection.write(
    checkText({ key }, '') +
      checkText({ type: FORM }, 'hits=5') +
      checkText({ type: JSON_TYPE }, '{}') +
      checkText({ type: JSON_TYPE }, '{"hits":5}', CLOSE),
  );
  await connection.closed;

  expect(connection.received.match(/(?<=HTTP\/1\.1 )\d+/g)).toEqual(['200', '400', '200', '400']);
});
