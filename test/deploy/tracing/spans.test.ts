import { PATIENT_STORE } from '../../support/both-limiters.js';
import { checkMany, releaseMany } from '../../support/bulk-client.js';
import { untilWaiting } from '../../support/debug-state.js';
import { startFaultProxy } from '../../support/fault-proxy.js';
import { rulesFile } from '../../support/grpc-app.js';
import { failureOf, of, useGateways } from '../../support/grpc-gateway.js';
import { approve, approvedId, begin, ratePath, send } from '../../support/http-client.js';
import { openConnection, requestText } from '../../support/raw-http.js';
import { OPERATION } from '../../support/redis-user.js';
import {
  killReplicas,
  type LogLine,
  type ReplicaProcess,
  startReplica,
} from '../../support/replica-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';
import { KIND, type ReceivedSpan, STATUS } from '../../support/tracing/otlp-json.js';
import {
  type OtlpReceiver,
  startOtlpReceiver,
  tracedTo,
} from '../../support/tracing/otlp-receiver.js';
import { type CallersSpan, callersSpan } from '../../support/tracing/trace-headers.js';

const folder = useTemporaryFolder();
const redis = useRedis();
const gatewayOf = useGateways();
const HOUR = 3_600_000;

let receiver: OtlpReceiver;
/** The replica of all tests that can share one. */
let replica: ReplicaProcess;
const ownReplicas: ReplicaProcess[] = [];
beforeAll(async () => {
  receiver = await startOtlpReceiver();
  const hour = { name: 'hour', max_requests_per_window: 1, window_millis: HOUR };
  replica = await startTraced({
    ...(await rulesFile(
      folder,
      { key_pattern: 'two limits', max_requests_per_window: 2, limits: [hour] },
      { key_pattern: 'fixed', requests_can_set_rate: false },
    )),
    GRPC_PORT: '0',
    GRPC_KEY_TEMPLATE: '{values}',
    LOG_2XX: 'true',
    OTEL_SERVICE_NAME: 'limits',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=a%20test,service.name=other',
  });
});
afterEach(() => Promise.all(ownReplicas.splice(0).map((own) => own.kill('SIGKILL'))));
afterAll(async () => {
  await killReplicas();
  await receiver.close();
});

/** A replica on Redis whose keys have one approval an hour. */
function startTraced(settings: Readonly<Record<string, string>> = {}): Promise<ReplicaProcess> {
  return startReplica({
    ...PATIENT_STORE,
    REDIS_URL: redis.url,
    KEY_PREFIX: `${uniqueKey()}:`,
    WINDOW_MILLIS: `${HOUR}`,
    MAX_REQUESTS: '1',
    ...tracedTo(receiver),
    ...settings,
  });
}

/** A replica of one test. */
async function startOwn(settings: Readonly<Record<string, string>> = {}): Promise<ReplicaProcess> {
  const own = await startTraced(settings);
  ownReplicas.push(own);
  return own;
}

/** The span with this name in a caller's trace. */
function spanOf({ traceId }: Pick<CallersSpan, 'traceId'>, name: string): Promise<ReceivedSpan> {
  return receiver.span((span) => span.traceId === traceId && span.name === name);
}

function spansOf({ traceId }: CallersSpan, name: string): ReceivedSpan[] {
  return receiver.spans.filter((span) => span.traceId === traceId && span.name === name);
}

function isOf({ id }: ReplicaProcess): (span: ReceivedSpan) => boolean {
  return ({ resource }) => resource['service.instance.id'] === id;
}

describe('a check', () => {
  test("has a span below its caller's, with outcome and batch size, and above its Redis call's span", async () => {
    const caller = callersSpan();
    const key = uniqueKey();
    const headers = { ...caller.headers, tracestate: 'vendor=1' };
    await send(replica.url, 'POST', ratePath(key), headers);
    const check = await spanOf(caller, 'check');
    const call = await spanOf(caller, `${OPERATION} check`);

    expect(check).toMatchObject({
      parentSpanId: caller.spanId,
      traceState: 'vendor=1',
      kind: KIND.server,
      status: STATUS.unset,
      attributes: {
        'sluice.outcome': 'approved',
        'sluice.reason': 'capacity',
        'sluice.decided_by': 'store',
        'sluice.batch_size': 1,
      },
      events: [],
      links: [],
    });
    expect(call).toMatchObject({
      parentSpanId: check.spanId,
      kind: KIND.client,
      status: STATUS.unset,
      attributes: {
        'db.system.name': 'redis',
        'db.operation.name': OPERATION,
        'db.stored_procedure.name': 'check',
        'sluice.batch_size': 1,
      },
      links: [check.spanId],
    });
    expect(call.millis).toBeLessThanOrEqual(check.millis);
    expect(JSON.stringify(receiver.spans)).not.toContain(key);
  });

  test('that is denied has the reason and the limit in its span', async () => {
    const caller = callersSpan();
    const key = 'two limits';
    await approve(replica.url, key);
    await send(replica.url, 'POST', ratePath(key), caller.headers);

    expect(await spanOf(caller, 'check')).toMatchObject({
      status: STATUS.unset,
      attributes: {
        'sluice.outcome': 'denied',
        'sluice.reason': 'limit_reached',
        'sluice.limit': 'hour',
      },
    });
  });

  test('that is rejected has the error in its span', async () => {
    const caller = callersSpan();
    await send(replica.url, 'POST', `${ratePath('fixed')}?maxRequests=5`, caller.headers);

    expect(await spanOf(caller, 'check')).toMatchObject({
      status: STATUS.unset,
      attributes: { 'sluice.outcome': 'rejected', 'sluice.reason': 'override_forbidden' },
    });
  });

  test('begins a trace if its caller does not trace', async () => {
    const own = await startOwn();
    await send(own.url, 'POST', ratePath(uniqueKey()));
    const check = await receiver.span((span) => span.name === 'check' && isOf(own)(span));

    expect(check.traceId).toMatch(/^[\da-f]{32}$/);
    expect(check.parentSpanId).toBeUndefined();
  });

  test('that shares a Redis call with another is linked to the call, and the call to both', async () => {
    const callers = [callersSpan(), callersSpan()] as const;
    const connection = await openConnection(replica.url);
    // Requests in one TCP segment are read in one tick, and go to Redis in one call.
    const requests = callers.map(({ headers }) =>
      requestText('POST', ratePath(uniqueKey()), headers),
    );
    connection.write(requests.join(''));
    await connection.receives(/request_id[^]*request_id/);
    connection.disconnect();
    const first = await spanOf(callers[0], 'check');
    const second = await spanOf(callers[1], 'check');
    const call = await spanOf(callers[0], `${OPERATION} check`);

    expect(call).toMatchObject({
      parentSpanId: first.spanId,
      links: [first.spanId, second.spanId],
      attributes: { 'sluice.batch_size': 2 },
    });
    expect([first.links, second.links]).toEqual([[], [call.spanId]]);
    expect(second.attributes['sluice.batch_size']).toBe(2);
  });
});

test('a bulk request has a span, with the spans of its elements below it', async () => {
  const caller = callersSpan();
  const keys = [uniqueKey(), uniqueKey()] as const;
  const checks = [keys[0], keys[1], keys[0]].map((key) => ({ key }));
  const results = await checkMany(replica.url, checks, caller.headers);
  const approvals = results.flatMap((result, i) =>
    'request_id' in result ? [{ key: checks[i]!.key, request_id: result.request_id }] : [],
  );
  await releaseMany(replica.url, approvals, caller.headers);
  const [checkCall, releaseCall] = [
    await spanOf(caller, 'check many'),
    await spanOf(caller, 'release many'),
  ];

  expect(checkCall).toMatchObject({
    parentSpanId: caller.spanId,
    kind: KIND.server,
    attributes: { 'sluice.elements': 3 },
  });
  const elements = spansOf(caller, 'check');
  expect(elements.map(({ parentSpanId }) => parentSpanId)).toEqual(Array(3).fill(checkCall.spanId));
  // Elements of one key are decided together.
  expect(elements.map(({ attributes }) => attributes['sluice.outcome']).sort()).toEqual([
    'approved',
    'approved',
    'denied',
  ]);
  expect(spansOf(caller, `${OPERATION} check`)).toMatchObject([
    {
      parentSpanId: elements[0]?.spanId,
      links: expect.arrayContaining(elements.map(({ spanId }) => spanId)) as unknown,
      attributes: { 'sluice.batch_size': 3 },
    },
  ]);
  expect(releaseCall.attributes).toEqual({ 'sluice.elements': 2 });
  expect(spansOf(caller, 'release')).toMatchObject([
    { parentSpanId: releaseCall.spanId, attributes: { 'sluice.outcome': 'released' } },
    { parentSpanId: releaseCall.spanId, attributes: { 'sluice.outcome': 'released' } },
  ]);
});

describe.each([
  ['redis', () => Promise.resolve(replica)],
  ['embedded', () => startOwn({ REDIS_URL: '' })],
])('a check that waits (%s limiter)', (_name, start) => {
  test('has a span until it is decided, with the time when it was queued', async () => {
    const caller = callersSpan();
    const tested = await start();
    const key = uniqueKey();
    const holder = await approve(tested.url, key);
    const path = `${ratePath(key)}?canWait=true`;
    const waiting = begin(tested.url, 'POST', path, caller.headers);
    await untilWaiting(tested.url, key, 1);
    await send(tested.url, 'DELETE', `${ratePath(key)}/${holder}`);
    approvedId(await waiting.answer);
    const check = await spanOf(caller, 'check');

    expect(check).toMatchObject({
      attributes: { 'sluice.outcome': 'approved', 'sluice.reason': 'waited' },
      events: ['queued'],
    });
    const waited = check.attributes['sluice.waited_millis'] as number;
    expect(waited).toBeGreaterThan(0);
    expect(waited).toBeLessThanOrEqual(check.millis);
  });

  test('has the outcome withdrawn in its span if its client disconnects', async () => {
    const caller = callersSpan();
    const tested = await start();
    const key = uniqueKey();
    await approve(tested.url, key);
    const path = `${ratePath(key)}?canWait=true`;
    const waiting = begin(tested.url, 'POST', path, caller.headers);
    await untilWaiting(tested.url, key, 1);
    waiting.disconnect();

    expect(await spanOf(caller, 'check')).toMatchObject({
      status: STATUS.unset,
      attributes: { 'sluice.outcome': 'withdrawn', 'sluice.reason': 'client_disconnected' },
      events: ['queued'],
    });
  });
});

describe('a release', () => {
  test("has a span, and its Redis call's span below it", async () => {
    const caller = callersSpan();
    const key = uniqueKey();
    const requestId = await approve(replica.url, key);
    await send(replica.url, 'DELETE', `${ratePath(key)}/${requestId}`, caller.headers);
    const release = await spanOf(caller, 'release');

    expect(release).toMatchObject({
      parentSpanId: caller.spanId,
      kind: KIND.server,
      attributes: { 'sluice.outcome': 'released', 'sluice.batch_size': 1 },
    });
    expect(await spanOf(caller, `${OPERATION} release`)).toMatchObject({
      parentSpanId: release.spanId,
      links: [release.spanId],
    });
    expect(JSON.stringify(receiver.spans)).not.toContain(requestId);
  });

  test('of an unknown id has that outcome in its span', async () => {
    const caller = callersSpan();
    const path = `${ratePath(uniqueKey())}/5f0c1dd4-7ed3-4a38-8a3c-bb6d8c0f6f0a`;
    await send(replica.url, 'DELETE', path, caller.headers);

    expect(await spanOf(caller, 'release')).toMatchObject({
      status: STATUS.unset,
      attributes: { 'sluice.outcome': 'not_found' },
    });
  });
});

describe('a call of a gateway', () => {
  let gateway: ReturnType<typeof gatewayOf>;
  let caller: CallersSpan;
  beforeEach(async () => {
    caller = callersSpan();
    const { grpcPort } = await replica.logged(({ msg }) => msg === 'serving');
    gateway = gatewayOf({ grpcPort: Number(grpcPort) });
  });

  test('has a span for each descriptor below its own, with the outcome', async () => {
    const full = uniqueKey();
    await gateway.askFor(full);
    const descriptors = [of(uniqueKey()), of(full)];
    await gateway.ask({ descriptors }, { headers: caller.headers });
    const checks = await until(() => {
      const spans = spansOf(caller, 'check');
      return spans.length === 2 && spans;
    });

    for (const check of checks) {
      expect(check).toMatchObject({
        parentSpanId: caller.spanId,
        kind: KIND.server,
        status: STATUS.unset,
        attributes: { 'sluice.decided_by': 'store' },
      });
    }
    const outcomes = checks.map(({ attributes }) => attributes['sluice.outcome']);
    expect(outcomes.sort()).toEqual(['approved', 'denied']);
    expect(JSON.stringify(receiver.spans)).not.toContain(full);
  });

  test('has the ids of its span in its line', async () => {
    await gateway.askFor(uniqueKey(), { headers: caller.headers });
    const { spanId } = await spanOf(caller, 'check');

    const line = await replica.logged(
      ({ msg, trace_id: trace }) => msg === 'call answered' && trace === caller.traceId,
    );
    expect(line).toMatchObject({ span_id: spanId });
  });

  test('that is rejected for its content has its error in the span', async () => {
    const limit = { requests_per_unit: 5, unit: 'HOUR' } as const;
    await failureOf(
      gateway.ask({ descriptors: [of('fixed', { limit })] }, { headers: caller.headers }),
    );

    expect(await spanOf(caller, 'check')).toMatchObject({
      attributes: { 'sluice.outcome': 'rejected', 'sluice.reason': 'override_forbidden' },
    });
  });
});

test("a replica's own Redis calls are in traces of their own", async () => {
  const caller = callersSpan();
  const own = await startOwn();
  const key = uniqueKey();
  await approve(own.url, key);
  const waiting = begin(own.url, 'POST', `${ratePath(key)}?canWait=true`, caller.headers);
  await untilWaiting(own.url, key, 1);
  waiting.disconnect();
  const withdrawal = await receiver.span(
    (span) => span.name === `${OPERATION} withdraw` && isOf(own)(span),
  );

  expect(withdrawal.parentSpanId).toBeUndefined();
  expect(withdrawal.links).toEqual([]);
});

describe('while Redis is down', () => {
  // Port 1 is reserved, so no server listens there.
  const nowhere = 'redis://127.0.0.1:1';

  test('a check that fails has a span with the error', async () => {
    const caller = callersSpan();
    const own = await startOwn({ REDIS_URL: nowhere, STORE_TIMEOUT_MILLIS: '500' });
    const { status } = await send(own.url, 'POST', ratePath(uniqueKey()), caller.headers);

    expect(status).toBe(503);
    expect(await spanOf(caller, 'check')).toMatchObject({
      status: STATUS.error,
      attributes: {
        'sluice.outcome': 'failed',
        'sluice.reason': 'store_unavailable',
        'error.type': 'STORE_UNAVAILABLE',
      },
    });
  });

  test('the span says which policy decided', async () => {
    const caller = callersSpan();
    const own = await startOwn({
      REDIS_URL: nowhere,
      STORE_TIMEOUT_MILLIS: '500',
      STORE_OUTAGE_POLICY: 'local',
    });
    await send(own.url, 'POST', ratePath(uniqueKey()), caller.headers);

    expect((await spanOf(caller, 'check')).attributes).toMatchObject({
      'sluice.outcome': 'approved',
      'sluice.decided_by': 'local',
    });
  });

  test('a Redis call that fails has a span with the kind of its failure', async () => {
    const caller = callersSpan();
    // It accepts connections. After it had refused them for so long, no call would be made.
    const closing = await startFaultProxy(1);
    const own = await startOwn({ REDIS_URL: closing.url, STORE_TIMEOUT_MILLIS: '500' });
    await send(own.url, 'POST', ratePath(uniqueKey()), caller.headers);
    closing.stop();

    expect(await spanOf(caller, `${OPERATION} check`)).toMatchObject({
      status: STATUS.error,
      attributes: { 'error.type': expect.stringMatching(/^(not_run|unknown)$/) as unknown },
    });
  });
});

describe('sampling', () => {
  /** The names of a trace's spans that arrive before the spans of a later request. */
  async function spansBefore(own: ReplicaProcess, { traceId }: CallersSpan): Promise<string[]> {
    const later = callersSpan();
    await send(own.url, 'POST', ratePath(uniqueKey()), later.headers);
    await spanOf(later, 'check');
    return receiver.spans.filter((span) => span.traceId === traceId).map(({ name }) => name);
  }

  test("follows a caller's decision not to record", async () => {
    const caller = callersSpan('00');
    const own = await startOwn();
    await send(own.url, 'POST', ratePath(uniqueKey()), caller.headers);
    await checkMany(own.url, [{ key: uniqueKey() }], caller.headers);

    expect(await spansBefore(own, caller)).toEqual([]);
    expect(
      receiver.spans
        .filter(isOf(own))
        .map(({ name }) => name)
        .sort(),
    ).toEqual([`${OPERATION} check`, 'check']);
  });

  test('applies the configured ratio if the caller does not trace', async () => {
    const own = await startOwn({
      OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
      OTEL_TRACES_SAMPLER_ARG: '0',
    });
    await send(own.url, 'POST', ratePath(uniqueKey()));
    const later = callersSpan();
    await send(own.url, 'POST', ratePath(uniqueKey()), later.headers);
    await spanOf(later, 'check');

    const spans = receiver.spans.filter(isOf(own));
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([later.traceId]));
  });

  test('ignores the caller if OTEL_PROPAGATORS lacks tracecontext', async () => {
    const caller = callersSpan();
    const own = await startOwn({ OTEL_PROPAGATORS: 'none' });
    await send(own.url, 'POST', ratePath(uniqueKey()), caller.headers);
    const check = await receiver.span((span) => span.name === 'check' && isOf(own)(span));

    expect(check.parentSpanId).toBeUndefined();
    expect(check.traceId).not.toBe(caller.traceId);
  });
});

test('spans name their service', async () => {
  const caller = callersSpan();
  await send(replica.url, 'POST', ratePath(uniqueKey()), caller.headers);

  expect((await spanOf(caller, 'check')).resource).toMatchObject({
    'service.name': 'limits',
    'service.version': expect.stringMatching(/^\d+\.\d+\.\d+/) as unknown,
    'service.instance.id': replica.id,
    'deployment.environment.name': 'a test',
    'telemetry.sdk.name': 'opentelemetry',
  });
});

test('the log lines of a request have the ids of its span', async () => {
  const caller = callersSpan();
  await send(replica.url, 'POST', ratePath(uniqueKey()), caller.headers);
  const { spanId } = await spanOf(caller, 'check');

  const isOfRequest = ({ msg, trace_id: trace }: LogLine): boolean =>
    msg === 'request completed' && trace === caller.traceId;
  expect(await replica.logged(isOfRequest)).toMatchObject({
    span_id: spanId,
    trace_flags: '01',
  });
});
