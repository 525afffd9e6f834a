import {
  addressIn,
  credentialsIn,
  sharedCredentialsIn,
} from '../../../../src/redis/connections/connection-settings.js';

test.each([
  ['redis://localhost', {}],
  ['redis://user@localhost', { username: 'user' }],
  ['redis://:password@localhost', { password: 'password' }],
  ['redis://user:password@localhost', { username: 'user', password: 'password' }],
  ['rediss://us%40er:%2F%3A%2C%25%20%D0%BA@localhost', { username: 'us@er', password: '/:,% к' }],
])('credentials in %s', (url, expected) => {
  expect(credentialsIn(new URL(url))).toStrictEqual(expected);
});

test.each([
  ['redis://localhost', { host: 'localhost', port: 6379 }],
  ['redis://localhost:7000/3', { host: 'localhost', port: 7000 }],
  ['rediss://user:password@redis.example', { host: 'redis.example', port: 6379 }],
  ['redis://127.0.0.1:1', { host: '127.0.0.1', port: 1 }],
  ['redis://[::1]', { host: '::1', port: 6379 }],
  ['redis://[2001:db8::7]:7000', { host: '2001:db8::7', port: 7000 }],
])('the address in %s', (url, expected) => {
  expect(addressIn(new URL(url), 6379)).toStrictEqual(expected);
});

test.each([
  [['redis://a', 'redis://user@b', 'redis://:first@c', 'redis://:second@d'], { password: 'first' }],
  [['redis://a', 'redis://user@b'], {}],
])('the credentials that the servers of %j share', (urls, expected) => {
  expect(sharedCredentialsIn(urls.map((url) => new URL(url)))).toStrictEqual(expected);
});
