import { provided } from '../../support/provided.js';
import { killReplicas, type ReplicaProcess, startReplica } from '../../support/replica-process.js';
import { grpcHost } from './grpc-host.js';
import { endPythonClients, PythonClient } from './python-client.js';

/** Two approvals in ten minutes. */
const SETTINGS = { WINDOW_MILLIS: '600000', MAX_REQUESTS: '2', GRPC_PORT: '0' };
const SERVICE = 'envoy.service.ratelimit.v3.RateLimitService';

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
  let sluice: ReplicaProcess;
  let client: PythonClient;

  async function serve(more: Readonly<Record<string, string>> = {}): Promise<void> {
    sluice = await startReplica({ ...SETTINGS, ...more });
    client = new PythonClient(python, await grpcHost(sluice));
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
});
