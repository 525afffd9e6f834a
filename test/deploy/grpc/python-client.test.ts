import { untilWaiting } from '../../support/debug-state.js';
import { ruleForAll, rulesFile } from '../../support/grpc-app.js';
import { approve, ratePath, send } from '../../support/http-client.js';
import { provided } from '../../support/provided.js';
import { killReplicas, type ReplicaProcess, startReplica } from '../../support/replica-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { until } from '../../support/until.js';
import { grpcHost } from './grpc-host.js';
import { endPythonClients, PythonClient } from './python-client.js';

/** Two approvals in ten minutes. */
const SETTINGS = { WINDOW_MILLIS: '600000', MAX_REQUESTS: '2', GRPC_PORT: '0' };
const SERVICE = 'envoy.service.ratelimit.v3.RateLimitService';
const KEY = 'python:user=a';
const OK = { code: 'OK', reply: expect.objectContaining({ overall_code: 'OK' }) as unknown };

const python = provided('SLUICE_TEST_GRPC_PYTHON');
// `npm test` says if Python is missing.
const describeWithPython = python === '' ? describe.skip : describe;

function requestOf(...descriptors: readonly object[]): object {
  return { domain: 'python', descriptors };
}

function descriptorOf(user: string, more: object = {}): object {
  return { entries: [{ key: 'user', value: user }], ...more };
}

const ONE = requestOf(descriptorOf('a'));

describeWithPython('a client in Python', () => {
  const folder = useTemporaryFolder();
  let sluice: ReplicaProcess;
  let client: PythonClient;

  async function serve(more: Readonly<Record<string, string>> = {}): Promise<void> {
    sluice = await startReplica({ ...SETTINGS, ...more });
    client = new PythonClient(python, await grpcHost(sluice));
  }

  /** Starts a service whose rules let every check wait up to two windows. */
  async function serveWaiting(): Promise<void> {
    await serve(await rulesFile(folder, ruleForAll({ max_wait_millis: 1_200_000 })));
  }

  /** Takes both approvals. @returns the ids */
  async function takeAll(): Promise<string[]> {
    return [await approve(sluice.url, KEY), await approve(sluice.url, KEY)];
  }

  afterEach(async () => {
    await endPythonClients();
    await killReplicas();
  });

  test('learns the services by reflection', async () => {
    await serve();

    expect((await client.services().outcome()).services).toEqual(
      expect.arrayContaining([SERVICE, 'grpc.health.v1.Health']),
    );
  });

  test('gets types under the names that protoc gives them', async () => {
    await serve();
    const types = [
      'grpc.health.v1.HealthListResponse',
      'envoy.extensions.common.ratelimit.v3.RateLimitDescriptor',
    ].map((message) => client.types(message).outcome());

    expect(await Promise.all(types)).toEqual([
      // Clients in Go reject a map whose entries have another name.
      { types: { statuses: 'grpc.health.v1.HealthListResponse.StatusesEntry' } },
      {
        types: {
          entries: 'envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.Entry',
          limit: 'envoy.extensions.common.ratelimit.v3.RateLimitDescriptor.RateLimitOverride',
          hits_addend: 'google.protobuf.UInt64Value',
        },
      },
    ]);
  });

  test('is approved until the limit is reached, and sees the limit', async () => {
    await serve();
    const replies = [];
    for (let i = 0; i < 3; i += 1) {
      replies.push((await client.shouldRateLimit(ONE).outcome()).reply);
    }

    const limit = { requests_per_unit: 2, name: 'default' };
    const until_reset = expect.stringMatching(/^(5\d\d|600)(\.\d+)?s$/) as unknown;
    const status = { current_limit: limit, duration_until_reset: until_reset };
    const headers = (remaining: string): unknown[] => [
      { key: 'X-RateLimit-Limit', value: '2' },
      { key: 'X-RateLimit-Remaining', value: remaining },
      { key: 'X-RateLimit-Reset', value: expect.stringMatching(/^(5\d\d|600)$/) as unknown },
    ];
    expect(replies).toEqual([
      {
        overall_code: 'OK',
        statuses: [{ ...status, code: 'OK', limit_remaining: 1 }],
        response_headers_to_add: headers('1'),
      },
      {
        overall_code: 'OK',
        statuses: [{ ...status, code: 'OK' }],
        response_headers_to_add: headers('0'),
      },
      {
        overall_code: 'OVER_LIMIT',
        statuses: [{ ...status, code: 'OVER_LIMIT' }],
        response_headers_to_add: [
          ...headers('0'),
          { key: 'Retry-After', value: expect.stringMatching(/^(5\d\d|600)$/) as unknown },
        ],
      },
    ]);
  });

  test.each([
    ['until its deadline', { timeout: 3000 }],
    ['without one', {}],
  ])('waits for its turn, %s', async (_, options) => {
    await serveWaiting();
    const [id] = await takeAll();
    const call = client.shouldRateLimit(ONE, options);
    await untilWaiting(sluice.url, KEY, 1);
    expect(call.outcomes).toEqual([]);
    await send(sluice.url, 'DELETE', `${ratePath(KEY)}/${id!}`);

    expect(await call.outcome()).toEqual(OK);
  });

  test('gets the error of an invalid request', async () => {
    await serve();
    const calls = [
      { descriptors: [descriptorOf('a')] },
      { domain: 'python' },
      requestOf({ entries: [{ value: 'a' }] }),
      requestOf(descriptorOf('a', { hits_addend: '1000000001' })),
      requestOf(descriptorOf('a', { limit: { requests_per_unit: 5, unit: 'HOUR' } })),
    ];
    const outcomes = await Promise.all(
      calls.map((request) => client.shouldRateLimit(request).outcome()),
    );

    expect(outcomes).toEqual(
      [
        'domain must not be empty',
        'descriptors must have at least one descriptor',
        'descriptors[0].entries[0].key must not be empty',
        'descriptors[0].hits_addend.value must be at most 1000000000',
        'descriptors[0].limit.unit must be as long as the window of its key (600000 ms)',
      ].map((details) => ({ code: 'INVALID_ARGUMENT', details })),
    );
  });

  test.each(['', SERVICE])('sees %j serve, until it drains', async (service) => {
    await serve({ SHUTDOWN_DELAY_MILLIS: '3600000' });
    const serving = { status: 'SERVING' };
    expect(await client.check(service).outcome()).toEqual({ code: 'OK', reply: serving });
    const watch = client.watch(service);
    await watch.outcome();
    sluice.signal('SIGTERM');
    await until(() => watch.outcomes.length >= 2);

    const drained = { status: 'NOT_SERVING' };
    expect(watch.outcomes).toEqual([{ reply: serving }, { reply: drained }]);
    expect(await client.check(service).outcome()).toEqual({ code: 'OK', reply: drained });
    // The service goes on deciding while it drains.
    expect(await client.shouldRateLimit(ONE).outcome()).toEqual(OK);
  });
});
