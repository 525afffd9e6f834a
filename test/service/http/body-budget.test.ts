import { BODY_BYTES } from '../../../src/service/callers/body-budget.js';
import { MAX_BODY_BYTES } from '../../../src/http/intake/body-buffer.js';
import type { TestApp } from '../../support/app.js';
import { callText, JSON_HEADERS, sendBody } from '../../support/bulk-client.js';
import { useHttpServices } from '../../support/http-service.js';
import { openConnection, type RawConnection, requestText } from '../../support/raw-http.js';
import { bearer } from '../../support/tokens.js';
import { sendUnended, type Unended } from '../../support/unended-bodies.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useApps } from '../../support/use-apps.js';
import { blockedLimiter } from '../../support/watched-limiter.js';

const startService = useHttpServices();

const IN_A_SHARE = BODY_BYTES.caller / MAX_BODY_BYTES;
const IN_ALL = BODY_BYTES.all / MAX_BODY_BYTES;
/** All but the last byte of bodies that are as large as may be. */
const NEARLY_ALL = { length: MAX_BODY_BYTES, sent: MAX_BODY_BYTES - 1 };

let app: TestApp;
const connections: RawConnection[] = [];
afterEach(() => {
  for (const connection of connections.splice(0)) connection.disconnect();
});
// Services stop after the connections have ended.
const start = useApps();

async function begin(unended: Unended): Promise<void> {
  connections.push(...(await sendUnended(app.url, unended)));
}

/** The status of a bulk request that is sent as a whole. */
async function statusOf(headers: Record<string, string> = {}): Promise<number> {
  const body = JSON.stringify([{ key: uniqueKey() }]);
  return (await sendBody(app.url, 'POST', body, { ...JSON_HEADERS, ...headers })).status;
}

async function untilStatus(status: number, headers: Record<string, string> = {}): Promise<void> {
  await until(async () => (await statusOf(headers)) === status);
}

/** The status of a bulk request from a client with this address. */
async function statusFrom(address: string): Promise<string> {
  const connection = await openConnection(app.url, address);
  connection.write(callText('POST', [{ key: uniqueKey() }], { Connection: 'close' }));
  await connection.closed;
  return connection.received.slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length);
}

test('bodies that are announced and do not come keep no other body out', async () => {
  app = await start();
  await begin({ connections: IN_ALL, length: MAX_BODY_BYTES, sent: 0 });

  expect(await statusOf()).toBe(200);
});

test('one caller takes at most its share, and gets it back when its clients disconnect', async () => {
  const one = { name: 'one', token: `token-of-one-${uniqueKey()}`, scopes: ['check'] };
  const other = { name: 'other', token: `token-of-other-${uniqueKey()}`, scopes: ['check'] };
  app = await start({}, { tokens: [one, other] });
  await begin({ ...NEARLY_ALL, connections: IN_ALL, headers: bearer(one) });
  await untilStatus(503, bearer(one));

  expect(await statusOf(bearer(other))).toBe(200);
  expect(await statusOf(bearer(one))).toBe(503);

  for (const connection of connections.splice(0)) connection.disconnect();
  await untilStatus(200, bearer(one));
});

test('bodies without a valid token take nothing of the budget', async () => {
  const caller = { name: 'one', token: `token-of-one-${uniqueKey()}`, scopes: ['check'] };
  app = await start({}, { tokens: [caller] });
  for (const headers of [{}, bearer({ token: 'unknown' })]) {
    await begin({ ...NEARLY_ALL, connections: IN_A_SHARE, headers });
  }
  await Promise.all(connections.map((connection) => connection.receives(/ 401 /)));
  await begin({ ...NEARLY_ALL, connections: IN_A_SHARE - 1, headers: bearer(caller) });

  expect(await statusOf(bearer(caller))).toBe(200);
});

test('without tokens one address takes at most its share', async () => {
  app = await start();
  await begin({ ...NEARLY_ALL, connections: IN_ALL });
  await untilStatus(503);

  expect(await statusFrom('127.0.0.2')).toBe('200');
  expect(await statusFrom('127.0.0.1')).toBe('503');
});

test('all bodies together take at most the budget of the port', async () => {
  app = await start();
  const addresses = Array.from({ length: IN_ALL / IN_A_SHARE }, (_, i) => `127.0.0.${i + 1}`);
  // At the same time: each is given up after a while.
  await Promise.all(
    addresses.map((from) => begin({ ...NEARLY_ALL, connections: IN_A_SHARE, from })),
  );

  await until(async () => (await statusFrom('127.0.0.9')) === '503');
});

test('the bodies of a connection are read one after the other', async () => {
  const { limiter, asked, unblock } = blockedLimiter();
  const service = await startService({ limiter });
  const call = (key: string): string => {
    const body = JSON.stringify([{ key }]).padEnd(MAX_BODY_BYTES);
    return (
      requestText('POST', '/rate', { ...JSON_HEADERS, 'Content-Length': String(body.length) }) +
      body
    );
  };
  const [first, second, ofOther] = [uniqueKey(), uniqueKey(), uniqueKey()];
  const connection = await openConnection(service.url);
  connection.write(call(first) + call(second));
  await until(() => asked.includes(first));
  const other = await openConnection(service.url);
  other.write(call(ofOther));
  await until(() => asked.includes(ofOther));
  expect(asked).toEqual([first, ofOther]);
  unblock();
  await connection.receives(/200 OK[^]*200 OK/);
  expect(asked).toEqual([first, ofOther, second]);
  connection.disconnect();
  other.disconnect();
});
