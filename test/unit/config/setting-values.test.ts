import { parseSettings, type Settings, settingsSchema } from '../../../src/config/settings.js';
import { DEFAULTS, type Environment, refusal } from '../../support/settings.js';
import { words } from '../../support/words.js';

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
