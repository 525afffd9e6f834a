import { parseSettings, type Settings, SettingsError } from '../../src/config.js';

type Name = keyof Settings;

const DEFAULTS: Settings = {
  PORT: 8080,
  HOST: '0.0.0.0',
  KEY_PREFIX: 'sluice:',
  WINDOW_MILLIS: 1000,
  MAX_REQUESTS: 100,
  MAX_REQUESTS_IN_QUEUE: 400,
  REQUESTS_CAN_SET_RATE: true,
  REQUESTS_CAN_MOD_QUEUE: true,
  LOG_LEVEL: 'info',
  LOG_2XX: false,
  LOG_4XX: false,
  LOG_5XX: true,
  SHUTDOWN_GRACE_MILLIS: 10_000,
  STORE_TIMEOUT_MILLIS: 500,
  REPLICA_LEASE_MILLIS: 5000,
};

const WHOLE_NUMBERS: [name: Name, min: number, max: number][] = [
  ['PORT', 0, 65_535],
  ['WINDOW_MILLIS', 1, 366 * 24 * 60 * 60 * 1000],
  ['MAX_REQUESTS', 1, 1_000_000_000],
  ['MAX_REQUESTS_IN_QUEUE', 0, 100_000],
  ['SHUTDOWN_GRACE_MILLIS', 0, 3_600_000],
  ['STORE_TIMEOUT_MILLIS', 1, 60_000],
  ['REPLICA_LEASE_MILLIS', 500, 3_600_000],
];

const YES_OR_NO: Name[] = [
  'REQUESTS_CAN_SET_RATE',
  'REQUESTS_CAN_MOD_QUEUE',
  'LOG_2XX',
  'LOG_4XX',
  'LOG_5XX',
];

const NO_WHOLE_NUMBERS = [
  ' ',
  ' 5000',
  '5000 ',
  '5000\n',
  '+5000',
  '-5000',
  '-0',
  '5000.5',
  '5000.0',
  '5e3',
  '0x1388',
  '5_000',
  '5,000',
  '5000ms',
  '5s',
  'many',
  'NaN',
  'Infinity',
  'null',
  'true',
  '٥٠٠٠',
  '５０００',
  '0000000000005000',
  '9'.repeat(16),
  '9'.repeat(400),
];

const NOT_YES_OR_NO = [
  'yes',
  'no',
  'on',
  'off',
  'y',
  '2',
  '-1',
  '01',
  ' true',
  'true ',
  'truee',
  'null',
];

/** The message that refuses `value`. */
function refusal(name: string, value: string): string {
  try {
    parseSettings({ [name]: value });
  } catch (error) {
    expect(error).toBeInstanceOf(SettingsError);
    return (error as SettingsError).message;
  }
  throw new Error(`${name}=${value} was taken`);
}

describe('settings', () => {
  test('have defaults, all but REDIS_URL', () => {
    expect(parseSettings({})).toStrictEqual(DEFAULTS);
  });

  test.each([...Object.keys(DEFAULTS), 'REDIS_URL'])(
    '%s that is empty counts as not set',
    (name) => {
      expect(parseSettings({ [name]: '' })).toStrictEqual(DEFAULTS);
      expect(parseSettings({ [name]: undefined })).toStrictEqual(DEFAULTS);
    },
  );

  test('leave other variables alone', () => {
    expect(parseSettings({ PATH: '/bin', port: 'x', MAX_REQUEST: 'x' })).toStrictEqual(DEFAULTS);
  });

  test('are taken together', () => {
    const given = { PORT: '1', WINDOW_MILLIS: '2', LOG_2XX: '1', REDIS_URL: 'redis://localhost' };

    expect(parseSettings(given)).toStrictEqual({
      ...DEFAULTS,
      PORT: 1,
      WINDOW_MILLIS: 2,
      LOG_2XX: true,
      REDIS_URL: 'redis://localhost',
    });
  });

  test('one wrong value among right ones is refused', () => {
    expect(() => parseSettings({ PORT: '1', WINDOW_MILLIS: 'x' })).toThrow(
      'WINDOW_MILLIS: got "x", takes a whole number from 1 to 31622400000',
    );
  });
});

describe.each(WHOLE_NUMBERS)('%s', (name, min, max) => {
  test.each([min, max])('takes %d', (value) => {
    expect(parseSettings({ [name]: String(value) })).toStrictEqual({ ...DEFAULTS, [name]: value });
  });

  test.each([String(min - 1), String(max + 1), ...NO_WHOLE_NUMBERS])(
    'does not take %j',
    (value) => {
      expect(refusal(name, value)).toBe(
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
    expect(refusal(name, value)).toBe(
      `${name}: got ${JSON.stringify(value)}, takes true, false, 1 or 0`,
    );
  });
});

describe('LOG_LEVEL', () => {
  const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

  test.each(levels)('takes %s', (value) => {
    expect(parseSettings({ LOG_LEVEL: value }).LOG_LEVEL).toBe(value);
  });

  test.each(['INFO', 'warning', 'verbose', '30', ' info', 'off', 'toString'])(
    'does not take %j',
    (value) => {
      expect(refusal('LOG_LEVEL', value)).toBe(
        `LOG_LEVEL: got ${JSON.stringify(value)}, takes one of ${levels.join(', ')}`,
      );
    },
  );
});

describe('HOST', () => {
  test.each(['127.0.0.1', '::', 'localhost'])('takes %s', (value) => {
    expect(parseSettings({ HOST: value }).HOST).toBe(value);
  });
});

describe('KEY_PREFIX', () => {
  test.each(['x', 'x'.repeat(128), 'staging:sluice:', '*?[a-z]\\'])('takes %j', (value) => {
    expect(parseSettings({ KEY_PREFIX: value }).KEY_PREFIX).toBe(value);
  });

  test.each(['x'.repeat(129), '{', '}', 'a{b}c:'])('does not take %j', (value) => {
    expect(refusal('KEY_PREFIX', value)).toBe(
      `KEY_PREFIX: got ${JSON.stringify(value)}, takes 1 to 128 characters without { and }`,
    );
  });
});

describe('REDIS_URL', () => {
  test.each([
    'redis://localhost',
    'redis://localhost:6379/2',
    'rediss://user:secret@redis.example:6380',
    'redis://:secret@127.0.0.1:6379',
    'redis://[::1]:6379',
  ])('takes %s', (value) => {
    expect(parseSettings({ REDIS_URL: value }).REDIS_URL).toBe(value);
  });

  test.each([
    'secret',
    'secret:6379',
    'localhost:6379/secret',
    'http://user:secret@localhost',
    'redis-sentinel://user:secret@localhost',
    'redis://user:secret@localhost:notaport',
    'redis://user:secret@localhost:65536',
    'redis:secret',
    'redis:/user:secret@localhost',
    ' redis://user:secret@localhost',
    '"redis://user:secret@localhost"',
  ])('does not take %j, and does not show it', (value) => {
    const message = refusal('REDIS_URL', value);

    expect(message).toBe(
      'REDIS_URL: got a value that is not shown, takes a URL that starts with redis:// or rediss://',
    );
    expect(message).not.toContain('secret');
  });
});
