import { parseSettings } from '../../../src/config/settings.js';
import { refusal, refusalAsLogged } from '../../support/settings.js';

const HIDDEN = 'REDIS_URL: got a value that is not shown';

describe('REDIS_URL', () => {
  test.each([
    'redis://localhost',
    'redis://localhost/',
    'redis://localhost:6379/2',
    'redis://localhost:6379/0',
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
    'redis://user:secret@localhost,',
    ',redis://user:secret@localhost',
    'redis://user:secret@localhost, redis://other',
    'redis://user:secret@localhost redis://other',
    'redis://user:secret@localhost;http://other,secret',
    'redis://user:sec,ret@localhost',
    'redis://user:sec#ret@localhost',
    'redis://user:12#secret@localhost',
    'redis://user:12?secret@localhost',
    'redis://user:12/secret@localhost',
    'redis://user:12/3@secret',
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
    ['a negative number as its path', 'redis://:secret@localhost/-1'],
    ['a number that is too long as its path', 'redis://:secret@localhost/12345678'],
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
