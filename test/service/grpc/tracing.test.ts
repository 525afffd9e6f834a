import { PATIENT_STORE } from '../../support/both-limiters.js';
import { GATEWAY_SETTINGS } from '../../support/grpc-app.js';
import { failureOf, type Gateway, of, useGateways } from '../../support/grpc-gateway.js';
import { killReplicas, startReplica } from '../../support/replica-process.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';
import { KIND, STATUS } from '../../support/tracing/otlp-json.js';
import { tracedTo, useOtlpReceiver } from '../../support/tracing/otlp-receiver.js';
import { callersSpan } from '../../support/tracing/trace-headers.js';

const redis = useRedis();
const receiver = useOtlpReceiver();
const gatewayOf = useGateways();
afterEach(killReplicas);

async function startTraced(more: Readonly<Record<string, string>> = {}) {
  const replica = await startReplica({
    ...GATEWAY_SETTINGS,
    ...PATIENT_STORE,
    REDIS_URL: redis.url,
    KEY_PREFIX: `${uniqueKey()}:`,
    LOG_2XX: 'true',
    ...tracedTo(receiver()),
    ...more,
  });
  const { grpcPort } = await replica.logged(({ msg }) => msg === 'serving');
  const gateway: Gateway = gatewayOf({ grpcPort: Number(grpcPort) });
  return { replica, gateway };
}

test("each descriptor has a span below the gateway's, with its outcome", async () => {
  const caller = callersSpan();
  const { replica, gateway } = await startTraced();
  const full = uniqueKey();
  await gateway.askFor(full);
  const descriptors = [of(uniqueKey()), of(full)];
  await gateway.ask({ descriptors }, { headers: caller.headers });
  const checks = await until(() => {
    const spans = receiver().spans.filter(
      ({ traceId, name }) => traceId === caller.traceId && name === 'check',
    );
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
  expect(JSON.stringify(receiver().spans)).not.toContain(full);
  await replica.kill('SIGTERM');
});

test('the line of a call has the ids of its span', async () => {
  const caller = callersSpan();
  const { replica, gateway } = await startTraced();
  await gateway.askFor(uniqueKey(), { headers: caller.headers });
  const check = await receiver().span(
    ({ traceId, name }) => traceId === caller.traceId && name === 'check',
  );
  const line = await replica.logged(({ msg }) => msg === 'call answered');

  expect(line).toMatchObject({ trace_id: caller.traceId, span_id: check.spanId });
});

test('a call that is rejected for its content has its error in the span', async () => {
  const caller = callersSpan();
  const { gateway } = await startTraced({ REQUESTS_CAN_SET_RATE: 'false' });
  const limit = { requests_per_unit: 5, unit: 'HOUR' } as const;
  const descriptors = [of(uniqueKey(), { limit })];
  await failureOf(gateway.ask({ descriptors }, { headers: caller.headers }));

  expect(await receiver().span(({ traceId }) => traceId === caller.traceId)).toMatchObject({
    attributes: { 'sluice.outcome': 'rejected', 'sluice.reason': 'override_forbidden' },
  });
});
