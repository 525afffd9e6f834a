import { type TestApp, startTestApp } from '../../support/app.js';
import { checkMany } from '../../support/bulk-client.js';
import { untilWaiting } from '../../support/debug-state.js';
import { approve, begin, ratePath, send } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { callersSpan } from '../../support/tracing/trace-headers.js';

let app: TestApp;
beforeEach(async () => {
  app = await startTestApp({
    WINDOW_MILLIS: '3600000',
    MAX_REQUESTS: '1',
    LOG_2XX: 'true',
    LOG_4XX: 'true',
  });
});
afterEach(() => app.stop(0));

test("the line of a request has the ids of its caller's span, even if Sluice does not trace it", async () => {
  const caller = callersSpan();
  await send(app.url, 'GET', '/healthz', caller.headers);

  expect(await app.logged(({ msg }) => msg === 'request completed')).toMatchObject({
    trace_id: caller.traceId,
    span_id: caller.spanId,
    trace_flags: '01',
  });
});

test("the line of a client that disconnects while it waits has the ids of its caller's span", async () => {
  const caller = callersSpan('00');
  const key = uniqueKey();
  await approve(app.url, key);
  const waiting = begin(app.url, 'POST', `${ratePath(key)}?canWait=true`, caller.headers);
  await untilWaiting(app.url, key, 1);
  waiting.disconnect();

  expect(await app.logged(({ status }) => status === 499)).toMatchObject({
    trace_id: caller.traceId,
    span_id: caller.spanId,
    trace_flags: '00',
  });
});

test("both lines of a bulk request have the ids of its caller's span", async () => {
  const caller = callersSpan();
  const key = uniqueKey();
  await checkMany(app.url, [{ key }, { key }], caller.headers);
  await app.stop(0);

  const lines = app.log.filter((line) => line.trace_id === caller.traceId);
  expect(lines.map(({ msg }) => msg)).toEqual([
    'elements of a bulk request denied or rejected',
    'request completed',
  ]);
});

test('a traceparent that is not valid is ignored', async () => {
  await send(app.url, 'GET', '/healthz', { traceparent: 'nonsense' });
  const line = await app.logged(({ msg }) => msg === 'request completed');

  expect(Object.keys(line)).not.toEqual(expect.arrayContaining(['trace_id']));
});
