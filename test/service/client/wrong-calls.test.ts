import { jest } from '@jest/globals';

import { limitedFetch, rateLimit, SluiceClient } from '../../../src/client/index.js';
import { useRecordingServers } from '../../support/client/recording-server.js';
import { until } from '../../support/until.js';

const serve = useRecordingServers();

/** What a caller in JavaScript may pass. */
const any = (value: unknown) => value as never;

test.each<[string, unknown, string]>([
  ['nothing', undefined, 'not undefined'],
  ['null', null, 'not undefined'],
  ['no address', {}, 'not undefined'],
  ['a number', { url: 5 }, 'not 5'],
  ['an address without http://', 'localhost:8080', 'not localhost:8080'],
  ['another protocol', new URL('ftp://localhost'), 'not ftp://localhost/'],
  ['no URL', 'sluice', 'not sluice'],
  ['a list of others', { url: ['http://localhost', 'b'] }, 'not b'],
])('a client is not made of %s, and the error names the address', (_, options, given) => {
  const make = () => new SluiceClient(any(options));

  expect(make).toThrow(TypeError);
  expect(make).toThrow(`url must be an address such as http://localhost:8080, ${given}`);
});

test('a client is made of a list of addresses', async () => {
  const server = await serve((call) => {
    call.answer();
  });
  const client = new SluiceClient(['http://127.0.0.1:1', server.url]);

  expect(await client.check('a')).toMatchObject({ approved: true });
});

const client = new SluiceClient('http://127.0.0.1:1');
const misspelt = (name: string) => any({ [name]: 1 });
const withKey = (name: string) => any({ keyOf: () => 'a', [name]: 1 });

test.each<[string, () => unknown, string]>([
  [
    'the client',
    () => new SluiceClient(any({ url: 'http://a', timeoutMilis: 1 })),
    'timeoutMilis; did you mean timeoutMillis?',
  ],
  [
    'rateLimit',
    () => rateLimit(client, withKey('maxWait')),
    'maxWait; did you mean maxWaitMillis?',
  ],
  [
    'limitedFetch',
    () => limitedFetch(client, withKey('pauseKey')),
    'pauseKey; did you mean pausesKey?',
  ],
  [
    'limitedFetch, which has no signal',
    () => limitedFetch(client, withKey('signal')),
    'signal; did you mean',
  ],
  [
    'limitedFetch, of what it reports',
    () => limitedFetch(client, any({ keyOf: () => 'a', reportsRemaining: { token: 'default' } })),
    'token; did you mean tokens?',
  ],
])('an unknown option of %s throws, and the error names the nearest one', (_, make, message) => {
  expect(make).toThrow(TypeError);
  expect(make).toThrow(`unknown option ${message}`);
});

test.each<[string, () => Promise<unknown>, string]>([
  ['check', () => client.check('a', misspelt('hitz')), 'hitz; did you mean hits?'],
  [
    'check, of waits',
    () => client.check('a', misspelt('maxWaitMillis')),
    'maxWaitMillis; did you mean',
  ],
  [
    'check, of objects',
    () => client.check('a', misspelt('constructor')),
    'constructor; did you mean',
  ],
  ['wait', () => client.wait('a', misspelt('MaxRequest')), 'MaxRequest; did you mean maxRequests?'],
  [
    'release',
    () => client.release('a', 'b', misspelt('timeout')),
    'timeout; did you mean timeoutMillis?',
  ],
  ['correct', () => client.correct('a', 'b', 1, misspelt('hits')), 'hits; did you mean'],
  ['renew', () => client.renew('a', 'b', misspelt('hold')), 'hold; did you mean holdMillis?'],
  ['pause', () => client.pause('a', 1, misspelt('sgnal')), 'sgnal; did you mean signal?'],
  [
    'reportRemaining',
    () => client.reportRemaining('a', 1, misspelt('reset')),
    'reset; did you mean resetMillis?',
  ],
  ['permit', () => client.permit('a', misspelt('waits')), 'waits; did you mean wait?'],
  [
    'withPermit',
    () => client.withPermit('a', () => 1, misspelt('holdMilis')),
    'holdMilis; did you mean holdMillis?',
  ],
])(
  'an unknown option of %s rejects, and the error names the nearest one',
  async (_, call, message) => {
    await expect(call()).rejects.toThrow(TypeError);
    await expect(call()).rejects.toThrow(`unknown option ${message}`);
  },
);

test('a permit that does not wait takes the longest wait, and does not send it', async () => {
  const server = await serve((call) => {
    call.answer();
  });
  const asking = new SluiceClient(server.url);

  expect(await asking.permit('a', { wait: false, maxWaitMillis: 5 })).toBe('id-of-a');

  expect(server.calls.map(({ elements }) => elements)).toEqual([[{ key: 'a' }]]);
});

test.each<[string, () => Promise<unknown>]>([
  ['check', () => client.check('\ud800')],
  ['wait', () => client.wait('\ud800')],
  ['release', () => client.release('\ud800', 'a')],
  ['correct', () => client.correct('\ud800', 'a', 1)],
  ['renew', () => client.renew('\ud800', 'a')],
  ['pause', () => client.pause('\ud800', 1)],
  ['reportRemaining', () => client.reportRemaining('\ud800', 1)],
  ['permit', () => client.permit('\ud800')],
])('a key that is not valid Unicode rejects, and the error says so: %s', async (_, call) => {
  const message = String.raw`key is not valid Unicode: "\ud800" has half of a surrogate pair`;

  await expect(call()).rejects.toThrow(new TypeError(message));
});

test('a request id that is not valid Unicode rejects, and the error says so', async () => {
  await expect(client.renew('a', '\udfff')).rejects.toThrow('requestId is not valid Unicode');
});

describe('with the fake timers of Jest', () => {
  afterEach(() => {
    jest.useRealTimers();
  });

  test('a client asks, pauses and renews by the real time', async () => {
    let failed = false;
    const server = await serve((call) => {
      if (call.method === 'PUT') call.succeed({ request_id: 'id' });
      else if (call.method === 'DELETE') call.answer(() => ({ status: 200 }));
      else if (call.elements.length === 0) call.succeed({ request_id: 'id' });
      else if (failed) call.answer();
      else call.fail(503, 'shutting down');
      failed = true;
    });
    jest.useFakeTimers();
    const asking = new SluiceClient(server.url);

    expect(await asking.check('a')).toMatchObject({ approved: true });
    const renewed = () => server.calls.some(({ method }) => method === 'PUT');
    await asking.withPermit('b', () => until(renewed), { holdMillis: 300 });
    expect(server.calls.map(({ method }) => method)).toEqual(
      expect.arrayContaining(['POST', 'PUT', 'DELETE']),
    );
  });
});
