import { parseSettings, settingsSchema, type Settings } from '../../../src/config/settings.js';
import { DEFAULTS, refusal, type Environment, refusalAsLogged } from '../../support/settings.js';
import { words } from '../../support/words.js';
import { warnOfMisspeltSettings } from '../../../src/config/misspelt-settings.js';
import { recordLog } from '../../support/recorded-log.js';

const TEXTS = [
  'HOST',
  'REDIS_SENTINEL_MASTER',
  'REDIS_USERNAME',
  'REDIS_PASSWORD',
  'REDIS_SENTINEL_USERNAME',
  'REDIS_SENTINEL_PASSWORD',
  'AUTH_TOKENS_FILE',
];

describe('settings', () => {
  test('have defaults, except optional settings', () => {
    expect(parseSettings({})).toStrictEqual(DEFAULTS);
  });

  test.each(Object.keys(settingsSchema.shape))('%s that is empty counts as not set', (name) => {
    expect(parseSettings({ [name]: '' })).toStrictEqual(DEFAULTS);
    expect(parseSettings({ [name]: undefined })).toStrictEqual(DEFAULTS);
  });

  test('leave other variables alone', () => {
    const others = { PATH: '/bin', port: 'x', MAX_REQUEST: 'x', PORT_FILE: '/nowhere' };

    expect(parseSettings(others)).toStrictEqual(DEFAULTS);
  });

  test('are taken together', () => {
    const given = { PORT: '1', WINDOW_MILLIS: '2', LOG_2XX: '1', REDIS_URL: 'redis://localhost' };

    expect(parseSettings(given)).toStrictEqual({
      ...DEFAULTS,
      PORT: 1,
      WINDOW_MILLIS: 2,
      LOG_2XX: true,
      REDIS_URL: ['redis://localhost'],
    });
  });
});

describe.each(TEXTS)('%s', (name) => {
  test.each(['x', '127.0.0.1', '::', ' spaces, "quotes" and \\ ', 'ключ 🔑'])(
    'takes %j as it is',
    (value) => {
      expect(parseSettings({ [name]: value })).toStrictEqual({ ...DEFAULTS, [name]: value });
    },
  );
});

describe('KEY_PREFIX', () => {
  test.each(['x', 'x'.repeat(128), 'staging:sluice:', '*?[a-z]\\'])('takes %j', (value) => {
    expect(parseSettings({ KEY_PREFIX: value }).KEY_PREFIX).toBe(value);
  });

  test.each(['x'.repeat(129), '{', '}', 'a{b}c:'])('does not take %j', (value) => {
    expect(refusal({ KEY_PREFIX: value })).toBe(
      `KEY_PREFIX: got ${JSON.stringify(value)}, takes 1 to 128 characters without { and }`,
    );
  });
});

type Name = keyof Settings;

const WHOLE_NUMBERS: [name: Name, min: number, max: number][] = [
  ['PORT', 0, 65_535],
  ['ADMIN_PORT', 0, 65_535],
  ['GRPC_PORT', 0, 65_535],
  ['SHUTDOWN_DELAY_MILLIS', 0, 3_600_000],
  ['SHUTDOWN_GRACE_MILLIS', 0, 3_600_000],
  ['WINDOW_MILLIS', 1, 366 * 24 * 60 * 60 * 1000],
  ['MAX_REQUESTS', 1, 1_000_000_000],
  ['WINDOW_STEPS', 2, 60],
  ['BURST', 1, 1_000_000_000],
  ['MAX_REQUESTS_IN_QUEUE', 0, 100_000],
  ['MAX_REQUESTS_CEILING', 1, 1_000_000_000],
  ['MAX_REQUESTS_IN_QUEUE_CEILING', 0, 100_000],
  ['WINDOW_MILLIS_CEILING', 1, 366 * 24 * 60 * 60 * 1000],
  ['MAX_HOLD_MILLIS', 1000, 24 * 60 * 60 * 1000],
  ['MAX_KEEP_MILLIS', 0, 600_000],
  ['REDIS_DATABASE', 0, 1_000_000],
  ['STORE_TIMEOUT_MILLIS', 1, 60_000],
  ['REPLICA_LEASE_MILLIS', 500, 3_600_000],
  ['MAX_KEYS', 1, 100_000_000],
  ['MAX_IDS_PER_KEY', 1, 1_000_000_000],
  ['MAX_HOLDS_PER_KEY', 1, 10_000],
  ['MAX_GROUPS_PER_KEY', 1, 100_000],
  ['MAX_WAITERS', 0, 1_000_000],
  ['MAX_WAITERS_PER_CALLER', 0, 1_000_000],
  ['MAX_CONNECTIONS', 1, 1_000_000],
  ['MAX_IN_FLIGHT_PER_CONNECTION', 1, 100_000],
  ['MAX_EVENT_LOOP_DELAY_MILLIS', 10, 60_000],
];

const YES_OR_NO: Name[] = [
  'REQUESTS_CAN_SET_RATE',
  'REQUESTS_CAN_MOD_QUEUE',
  'REQUESTS_CAN_SET_WINDOW',
  'REQUESTS_CAN_HOLD',
  'READY_DURING_OUTAGE',
  'DEBUG_ENDPOINTS',
  'LOG_2XX',
  'LOG_4XX',
  'LOG_5XX',
];

/** Other settings that the numbers need. */
const NUMBER_COMPANIONS: Readonly<
  Partial<Record<Name, Readonly<Record<string, string | number>>>>
> = {
  WINDOW_STEPS: { ALGORITHM: 'sliding_window' },
  BURST: { ALGORITHM: 'token_bucket', MAX_REQUESTS: 1_000_000_000 },
};

/** Other settings that the choices need. */
const COMPANIONS = {
  REDIS_URL: 'redis://localhost',
  REDIS_SENTINEL_MASTER: 'main',
  CONFIG_FILE: '/rules.yaml',
};
const CHOICES: [name: Name, values: string[]][] = [
  ['ALGORITHM', ['fixed_window', 'sliding_window', 'token_bucket']],
  ['UNKNOWN_KEYS', ['allow', 'deny']],
  ['RATE_LIMIT_HEADERS', ['off', 'draft', 'legacy']],
  ['REDIS_MODE', ['standalone', 'sentinel', 'cluster']],
  ['STORE_OUTAGE_POLICY', ['deny', 'allow', 'local']],
  ['LOG_LEVEL', ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']],
];

const NO_WHOLE_NUMBERS = words(`
  +5000 -5000 -0 5000.5 5000.0 5e3 0x1388 5_000 5,000 5000ms 5s many NaN Infinity null true
  ٥٠٠٠ ５０００ 0000000000005000
`).concat(' ', ' 5000', '5000 ', '5000\n', '9'.repeat(16), '9'.repeat(400));

const NOT_YES_OR_NO = words('yes no on off y 2 -1 01 truee null').concat(' true', 'true ');

/** The names of the settings that answer a value which no setting takes with an error that matches `what`. */
function settingsThatTake(what: RegExp): string[] {
  return Object.entries(settingsSchema.shape).flatMap(([name, schema]) => {
    const { error } = schema.safeParse('?');
    return what.test(error?.issues[0]?.message ?? '') ? [name] : [];
  });
}

test.each<[kind: string, tested: Name[], takes: RegExp]>([
  ['whole numbers', WHOLE_NUMBERS.map(([name]) => name), /^a whole number/],
  ['switches', YES_OR_NO, /^true, false/],
  ['choices', CHOICES.map(([name]) => name), /^one of/],
])('all settings that are %s are tested here', (_kind, tested, takes) => {
  expect([...tested].sort()).toEqual(settingsThatTake(takes).sort());
});

describe.each(WHOLE_NUMBERS)('%s', (name, min, max) => {
  test.each([min, max])('takes %d', (value) => {
    const settings = { ...NUMBER_COMPANIONS[name], [name]: value };
    const texts = Object.entries<string | number>(settings).map(([one, its]) => [one, `${its}`]);
    expect(parseSettings(Object.fromEntries(texts) as Environment)).toStrictEqual({
      ...DEFAULTS,
      ...settings,
    });
  });

  test.each([String(min - 1), String(max + 1), ...NO_WHOLE_NUMBERS])(
    'does not take %j',
    (value) => {
      expect(refusal({ [name]: value })).toBe(
        `${name}: got ${JSON.stringify(value)}, takes a whole number from ${min} to ${max}`,
      );
    },
  );
});

describe.each(YES_OR_NO)('%s', (name) => {
  test.each([
    ['true', true],
    ['1', true],
    ['false', false],
    ['0', false],
  ])('takes %s', (text, value) => {
    expect(parseSettings({ [name]: text })).toStrictEqual({ ...DEFAULTS, [name]: value });
  });

  test.each(NOT_YES_OR_NO)('does not take %j', (value) => {
    expect(refusal({ [name]: value })).toBe(
      `${name}: got ${JSON.stringify(value)}, takes true, false, 1 or 0`,
    );
  });
});

describe.each(CHOICES)('%s', (name, values) => {
  test.each(values)('takes %s', (value) => {
    expect(parseSettings({ ...COMPANIONS, [name]: value })[name]).toBe(value);
  });

  test.each([values[0]!.toUpperCase(), ` ${values[0]}`, `${values[0]}s`, '0', 'toString'])(
    'does not take %j',
    (value) => {
      expect(refusal({ ...COMPANIONS, [name]: value })).toBe(
        `${name}: got ${JSON.stringify(value)}, takes one of ${values.join(', ')}`,
      );
    },
  );
});

describe('ALLOWED_ORIGINS', () => {
  test('takes several', () => {
    const text = 'https://app.example, http://[::1]:3000,http://10.1.2.3';
    expect(parseSettings({ ALLOWED_ORIGINS: text }).ALLOWED_ORIGINS).toEqual([
      'https://app.example',
      'http://[::1]:3000',
      'http://10.1.2.3',
    ]);
  });

  test.each([
    ...['*', 'null', 'app.example', 'https://app.example/', 'https://app.example/page'],
    ...['https://App.example', 'https://app.example:443', 'ftp://app.example', 'https://a,'],
  ])('does not take %j', (value) => {
    const takes = 'origins such as https://app.example, with commas between them';
    expect(refusal({ ALLOWED_ORIGINS: value })).toBe(
      `ALLOWED_ORIGINS: got ${JSON.stringify(value)}, takes ${takes}`,
    );
  });
});

describe('ALLOWED_HOSTS', () => {
  test('takes several', () => {
    const text = 'sluice.example,10.1.2.3, ::1,*,my_host';
    expect(parseSettings({ ALLOWED_HOSTS: text }).ALLOWED_HOSTS).toEqual([
      ...['sluice.example', '10.1.2.3', '::1', '*', 'my_host'],
    ]);
  });

  test.each(['a:8080', '[::1]', 'https://a', '*.example', 'a b', 'a,,b', 'a/'])(
    'does not take %j',
    (value) => {
      const takes = 'names without ports, or *, with commas between them';
      expect(refusal({ ALLOWED_HOSTS: value })).toBe(
        `ALLOWED_HOSTS: got ${JSON.stringify(value)}, takes ${takes}`,
      );
    },
  );
});

describe('GRPC_KEY_TEMPLATE', () => {
  test.each(['{entries}', '{values}', 'envoy:{domain}/{entries}', '{values}-{values}'])(
    'takes %s',
    (template) => {
      const settings = parseSettings({ GRPC_KEY_TEMPLATE: template });
      expect(settings.GRPC_KEY_TEMPLATE).toBe(template);
    },
  );

  test.each(['all', '{domain}', '{entries', '{entries}}', '{entries}{other}', '{entries}{}'])(
    'does not take %s',
    (template) => {
      expect(refusal({ GRPC_KEY_TEMPLATE: template })).toBe(
        `GRPC_KEY_TEMPLATE: got "${template}", takes a text with {entries} or {values}, optionally {domain}, and no other braces`,
      );
    },
  );
});

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
  ['a cluster and the database 0', { ...CLUSTER, REDIS_DATABASE: '0' }],
  ['several sentinels and their primary', SENTINEL],
  ['one Redis and a database', { REDIS_URL: 'redis://a', REDIS_DATABASE: '3' }],
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
  ['a certificate and its key', { TLS_CERT_FILE: 'cert', TLS_KEY_FILE: 'key' }],
  ['a token bucket and all of its maximum at once', { ALGORITHM: 'token_bucket', BURST: '100' }],
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

const HIDDEN = 'REDIS_URL: got a value that is not shown';

describe('REDIS_URL', () => {
  test.each([
    'redis://localhost',
    'redis://localhost:6379/2',
    'rediss://user:secret@redis.example:6380',
    'redis://:secret@127.0.0.1:6379',
    'redis://user:s%2Ce%25c%40ret@localhost',
    'redis://user:1%232%2F3%3F4@localhost',
    'redis://user:1@2@localhost',
    'redis://[::1]:6379',
  ])('takes %s', (value) => {
    expect(parseSettings({ REDIS_URL: value }).REDIS_URL).toEqual([value]);
  });

  test('takes several URLs separated by commas, in their order', () => {
    const urls = ['redis://b:26379', 'redis://:secret@a', 'redis://[::1]:1'];
    const settings = { REDIS_URL: urls.join(','), REDIS_MODE: 'cluster' };

    expect(parseSettings(settings).REDIS_URL).toEqual(urls);
  });

  test.each([
    'secret',
    'localhost:6379/secret',
    'http://user:secret@localhost',
    'redis://user:secret@localhost:notaport',
    'redis:/user:secret@localhost',
    ' redis://user:secret@localhost',
    'redis://user:secret@localhost,',
    'redis://user:secret@localhost, redis://other',
    'redis://user:secret@localhost;http://other,secret',
    'redis://user:sec,ret@localhost',
    'redis://user:sec#ret@localhost',
    'redis://user:12?secret@localhost',
    'redis://user:12/secret@localhost',
  ])('does not take %j, and does not show it', (value) => {
    const environment = { REDIS_URL: value, REDIS_MODE: 'cluster' };

    expect(refusal(environment)).toBe(
      `${HIDDEN}, takes a URL that starts with redis:// or rediss://, or several with commas between them; ` +
        'in a user or a password, percent-encode special characters, such as # / ? , as %23 %2F %3F %2C',
    );
    expect(refusalAsLogged(environment)).not.toMatch(/secret|sec[,#]ret/);
  });

  test.each([
    ['a path that is not a number', 'redis://:secret@localhost/main'],
    ['a path below a number', 'redis://:secret@localhost/1/2'],
  ])('does not take one with %s', (_what, value) => {
    expect(refusal({ REDIS_URL: value })).toBe(
      `${HIDDEN}, takes the number of a database as its path`,
    );
  });

  test('does not take several URLs in standalone mode', () => {
    expect(refusal({ REDIS_URL: 'redis://:secret@a,redis://b' })).toBe(
      `${HIDDEN}, takes one URL if REDIS_MODE is standalone`,
    );
  });

  test('does not take URLs with TLS together with URLs without', () => {
    const settings = { REDIS_URL: 'rediss://:secret@a,redis://b', REDIS_MODE: 'cluster' };

    expect(refusal(settings)).toBe(`${HIDDEN}, takes either redis:// or rediss://, not both`);
  });

  test.each(['%', '100%', '%zz', '%ff'])(
    'does not take a password that is not percent-encoded, such as %s',
    (password) => {
      const environment = { REDIS_URL: `redis://:secret${password}@localhost` };

      expect(refusal(environment)).toContain(`${HIDDEN}, takes `);
      expect(refusalAsLogged(environment)).not.toContain('secret');
    },
  );
});

/** Variables of shells, npm, Node's image, Kubernetes, hosts of containers, and other programs. */
const UNRELATED = words(`
  PATH HOME PWD SHLVL _ TERM TZ USER LOGNAME SHELL EDITOR LANG LC_ALL HOSTNAME host port PORTS
  PORT_RANGE CI NODE_ENV NODE_VERSION NODE_OPTIONS YARN_VERSION npm_config_loglevel
  npm_package_name npm_lifecycle_event npm_config_cache npm_node_execpath INIT_CWD NODE COLOR
  KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT KUBERNETES_SERVICE_PORT_HTTPS
  KUBERNETES_PORT_443_TCP_ADDR KUBERNETES_PORT_443_TCP_PROTO SLUICE_SERVICE_HOST
  SLUICE_SERVICE_PORT SLUICE_SERVICE_PORT_HTTP SLUICE_PORT_8080_TCP_PROTO
  SLUICE_PORT_8080_TCP_PORT SLUICE_ADMIN_PORT_9090_TCP_PORT SLUICE_GRPC_SERVICE_PORT SLUICE_URL
  SLUICE_HOST SLUICE_TOKEN SLUICE_IMAGE REDIS_SERVICE_HOST REDIS_SERVICE_PORT
  REDIS_PORT_6379_TCP_ADDR REDIS_HOST REDIS_DB REDIS_USER REDIS_TLS_URL REDIS_PASS REDIS_TLS
  REDIS_VERSION POD_NAME POD_IP NAMESPACE DATABASE_URL DYNO HTTP_PROXY HTTPS_PROXY NO_PROXY
  ADMIN_HOST SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS TLS_CA_FILE OTEL_LOG_LEVEL
  OTEL_SERVICE_NAME LOG_FORMAT LOG_FILE GRPC_HOST HTTP_PORT METRICS_PORT CONFIG_PATH
  MAX_RETRIES AWS_REGION WEB_CONCURRENCY DEBUG FLY_REGION MEMORY_LIMIT
`);
/** Kubernetes gives these the address of a service. */
const LINKS = words(`
  KUBERNETES_PORT SLUICE_PORT SLUICE_PORT_8080_TCP SLUICE_ADMIN_PORT SLUICE_GRPC_PORT
  REDIS_PORT
`);

function warningsOf(environment: Readonly<Record<string, string>>): unknown[] {
  const { logger, lines } = recordLog();
  warnOfMisspeltSettings(environment, logger);
  return lines.map(({ level, msg, variable, setting }) => [level, msg, variable, setting]);
}

test.each([
  ['MAX_REQUEST', 'MAX_REQUESTS'],
  ['REDIS_ULR', 'REDIS_URL'],
  ['REDIS_PASSWORD_FIEL', 'REDIS_PASSWORD_FILE'],
  ['max_requests', 'MAX_REQUESTS'],
  ['maxRequests', 'MAX_REQUESTS'],
  ['MAX_REQUESTS_QUEUE', 'MAX_REQUESTS_IN_QUEUE'],
  ['LOGLEVEL', 'LOG_LEVEL'],
  ['SLUICE_MAX_REQUESTS', 'MAX_REQUESTS'],
])('%s is warned of, as %s', (variable, setting) => {
  expect(warningsOf({ [variable]: 'secret' })).toEqual([
    ['warn', `${variable} is not a setting; did you mean ${setting}?`, variable, setting],
  ]);
});

test('a setting is not warned of, nor is a variable that is empty', () => {
  for (const name of [...Object.keys(settingsSchema.shape), 'REDIS_URL_FILE']) {
    expect(warningsOf({ [name]: '1' })).toEqual([]);
  }
  expect(warningsOf({ MAX_REQUEST: '' })).toEqual([]);
});

test('variables that mean something else are not warned of', () => {
  for (const variable of UNRELATED) expect(warningsOf({ [variable]: '7' })).toEqual([]);
  for (const link of LINKS) expect(warningsOf({ [link]: 'tcp://10.0.0.1:443' })).toEqual([]);
});
