import {
  clientOptions,
  credentials,
  reconnectAfter,
} from '../../../../src/redis/connections/client-options.js';
import type { ConnectionSettings } from '../../../../src/redis/connections/connection-settings.js';

const SETTINGS: ConnectionSettings = {
  mode: 'standalone',
  urls: ['redis://localhost'],
  database: 0,
  timeoutMillis: 700,
  name: 'sluice:replica',
};

test('the delay of a reconnection grows, up to a quarter of a second', () => {
  const delays = Array.from({ length: 8 }, (_, i) => reconnectAfter(i + 1));
  expect(delays).toEqual([10, 20, 40, 80, 160, 250, 250, 250]);
  expect(reconnectAfter(10_000)).toBe(250);
});

test('a connection has a name and a bounded time, queues nothing, sends nothing again, and is made again', () => {
  expect(clientOptions(SETTINGS)).toMatchObject({
    connectionName: 'sluice:replica',
    connectTimeout: 700,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: reconnectAfter,
  });
});

test('a connection awaits late replies, since the callers have time limits', () => {
  expect(clientOptions(SETTINGS)).not.toHaveProperty('commandTimeout');
});

test('TLS is passed as the same object, since its properties may change', () => {
  const tls = { ca: 'ca', servername: 'redis' };
  expect(clientOptions({ ...SETTINGS, tls }).tls).toBe(tls);
});

describe('credentials', () => {
  const ofUrl = { username: 'url user', password: 'url password' };

  test.each([
    ['of the URL', {}, ofUrl, ofUrl],
    ['of the settings', { username: 'user', password: 'password' }, {}, undefined],
    ['of the settings before the URL', { username: 'u', password: 'p' }, ofUrl, undefined],
    ['of both', { password: 'p' }, ofUrl, { username: 'url user', password: 'p' }],
    ['with a password alone', {}, { password: 'p' }, { password: 'p' }],
    ['that are missing', {}, {}, {}],
    ['that are undefined', { username: undefined, password: undefined }, {}, {}],
  ])('%s', (_what, settings, url, expected) => {
    expect(credentials({ ...SETTINGS, ...settings }, url)).toStrictEqual(expected ?? settings);
  });
});
