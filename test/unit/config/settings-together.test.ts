import { parseSettings } from '../../../src/config/settings.js';
import { type Environment, refusal } from '../../support/settings.js';

const TLS_REDIS = { REDIS_URL: 'rediss://localhost' };
const CLUSTER = { REDIS_URL: 'redis://a,redis://b', REDIS_MODE: 'cluster' };
const SENTINEL = {
  REDIS_URL: 'redis://a,redis://b',
  REDIS_MODE: 'sentinel',
  REDIS_SENTINEL_MASTER: 'main',
};
const CERTIFICATES = ['TLS', 'REDIS_TLS'];

const GO_TOGETHER: [what: string, environment: Environment][] = [
  ['a cluster of several nodes', CLUSTER],
  ['a cluster known by one node', { ...CLUSTER, REDIS_URL: 'redis://a/' }],
  ['a cluster and the database 0', { ...CLUSTER, REDIS_DATABASE: '0' }],
  ['a cluster and the database 0 in its URL', { ...CLUSTER, REDIS_URL: 'redis://a/0' }],
  ['several sentinels and their primary', SENTINEL],
  ['sentinels and a database', { ...SENTINEL, REDIS_DATABASE: '3' }],
  ['one Redis and a database', { REDIS_URL: 'redis://a', REDIS_DATABASE: '3' }],
  ['one Redis and another database in its URL', { REDIS_URL: 'redis://a/2', REDIS_DATABASE: '3' }],
  ['standalone and no Redis', { REDIS_MODE: 'standalone' }],
  ['TLS to Redis by the well-known authorities', TLS_REDIS],
  [
    'all of TLS to Redis',
    {
      ...TLS_REDIS,
      REDIS_TLS_CA_FILE: 'ca',
      REDIS_TLS_CERT_FILE: 'cert',
      REDIS_TLS_KEY_FILE: 'key',
      REDIS_TLS_SERVER_NAME: 'redis',
    },
  ],
  ['TLS to several nodes', { ...CLUSTER, REDIS_URL: 'rediss://a,rediss://b' }],
  ['a certificate and its key', { TLS_CERT_FILE: 'cert', TLS_KEY_FILE: 'key' }],
  ['a sliding window and its steps', { ALGORITHM: 'sliding_window', WINDOW_STEPS: '20' }],
  ['a token bucket and all of its maximum at once', { ALGORITHM: 'token_bucket', BURST: '100' }],
  ['two ports', { PORT: '1', ADMIN_PORT: '2' }],
  ['three free ports', { PORT: '0', ADMIN_PORT: '0', GRPC_PORT: '0' }],
];

test.each(GO_TOGETHER)('%s go together', (_what, environment) => {
  expect(parseSettings(environment)).toBeDefined();
});

test.each(['sentinel', 'cluster'])('REDIS_MODE=%s needs a REDIS_URL', (mode) => {
  expect(refusal({ REDIS_MODE: mode, REDIS_SENTINEL_MASTER: 'main' })).toBe(
    `REDIS_MODE: got "${mode}", takes REDIS_URL to be set as well`,
  );
});

test('sentinels need the name of their primary', () => {
  expect(refusal({ ...SENTINEL, REDIS_SENTINEL_MASTER: '' })).toBe(
    'REDIS_SENTINEL_MASTER: got nothing, takes the name of the primary that the sentinels watch',
  );
});

test('a cluster takes only database 0', () => {
  expect(refusal({ ...CLUSTER, REDIS_DATABASE: '1' })).toBe(
    'REDIS_DATABASE: got 1, takes 0 with a cluster, which has no other',
  );
});

test.each([CLUSTER, SENTINEL])('URLs of several nodes take no database: %j', (environment) => {
  expect(refusal({ ...environment, REDIS_URL: 'redis://a,redis://:secret@b/1' })).toBe(
    `REDIS_URL: got a value that is not shown, takes no database if REDIS_MODE is ${environment.REDIS_MODE}`,
  );
});

describe.each([
  'REDIS_TLS_CA_FILE',
  'REDIS_TLS_CERT_FILE',
  'REDIS_TLS_KEY_FILE',
  'REDIS_TLS_SERVER_NAME',
])('%s', (name) => {
  // One half of a pair would be rejected because the other is missing.
  const tls = { REDIS_TLS_CERT_FILE: 'x', REDIS_TLS_KEY_FILE: 'x', [name]: 'x' };

  test.each([
    ['no Redis', {}],
    ['a Redis without TLS', { REDIS_URL: 'redis://localhost' }],
  ])('is rejected with %s', (_what, environment) => {
    const first = name.endsWith('CA_FILE') ? name : 'REDIS_TLS_CERT_FILE';

    expect(refusal({ ...environment, ...tls })).toBe(
      `${first}: got "x", takes a REDIS_URL that starts with rediss://`,
    );
    expect(refusal({ ...environment, [name]: 'x' })).toBe(
      `${name}: got "x", takes a REDIS_URL that starts with rediss://`,
    );
  });
});

describe.each(CERTIFICATES)('a certificate of %s', (prefix) => {
  const [certificate, key] = [`${prefix}_CERT_FILE`, `${prefix}_KEY_FILE`];

  test('needs its key', () => {
    expect(refusal({ ...TLS_REDIS, [certificate]: 'cert' })).toBe(
      `${key}: got nothing, takes a file if ${certificate} is set`,
    );
  });

  test('is needed if its key is given', () => {
    expect(refusal({ ...TLS_REDIS, [key]: 'key' })).toBe(
      `${certificate}: got nothing, takes a file if ${key} is set`,
    );
  });
});

test.each([
  [{ PORT: '9000', ADMIN_PORT: '9000' }, 'ADMIN_PORT: got 9000, takes another port than PORT'],
  [{ ADMIN_PORT: '8080' }, 'ADMIN_PORT: got 8080, takes another port than PORT'],
  [{ GRPC_PORT: '8080' }, 'GRPC_PORT: got 8080, takes another port than PORT'],
  [{ ADMIN_PORT: '1', GRPC_PORT: '1' }, 'GRPC_PORT: got 1, takes another port than ADMIN_PORT'],
])('two ports must differ: %j', (environment, message) => {
  expect(refusal(environment)).toBe(message);
});

test.each([
  [
    { WINDOW_STEPS: '10' },
    'WINDOW_STEPS: got 10, takes ALGORITHM=sliding_window, not fixed_window',
  ],
  [{ BURST: '1' }, 'BURST: got 1, takes ALGORITHM=token_bucket, not fixed_window'],
  [
    { ALGORITHM: 'token_bucket', WINDOW_STEPS: '20' },
    'WINDOW_STEPS: got 20, takes ALGORITHM=sliding_window, not token_bucket',
  ],
  [
    { ALGORITHM: 'sliding_window', BURST: '5' },
    'BURST: got 5, takes ALGORITHM=token_bucket, not sliding_window',
  ],
  [{ ALGORITHM: 'token_bucket', BURST: '101' }, 'BURST: got 101, takes at most MAX_REQUESTS, 100'],
])('an algorithm has its own settings only: %j', (environment, message) => {
  expect(refusal(environment)).toBe(message);
});
