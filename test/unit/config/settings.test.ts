import { parseSettings, settingsSchema } from '../../../src/config/settings.js';
import { DEFAULTS, refusal } from '../../support/settings.js';

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

  test('one invalid value among valid ones is rejected', () => {
    expect(refusal({ PORT: '1', WINDOW_MILLIS: 'x' })).toBe(
      'WINDOW_MILLIS: got "x", takes a whole number from 1 to 31622400000',
    );
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
