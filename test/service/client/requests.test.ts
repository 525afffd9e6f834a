import { jest } from '@jest/globals';

import { limitedFetch, rateLimit, SluiceClient } from '../../../clients/node/src/index.js';
import { type RecordedCall, useRecordingServers } from '../../support/client/recording-server.js';
import { until } from '../../support/until.js';

const serve = useRecordingServers();

const keys = (count: number, prefix = 'key') =>
  Array.from({ length: count }, (_, i) => `${prefix}-${i}`);

const answered = (call: { answer: () => void }) => {
  call.answer();
};

test('the checks of a tick travel in one call, in their order, with their overrides', async () => {
  const server = await serve(answered);
  const client = new SluiceClient(server.url);

  const decisions = await Promise.all([
    client.check('a'),
    client.check('b', { maxRequests: 5, maxRequestsInQueue: 6 }),
    client.check('a'),
  ]);

  expect(decisions).toEqual(
    ['a', 'b', 'a'].map((key) => ({ approved: true, requestId: `id-of-${key}` })),
  );
  expect(server.calls).toMatchObject([{ method: 'POST', path: '/rate' }]);
  expect(server.calls[0]!.elements).toEqual([
    { key: 'a' },
    { key: 'b', maxRequests: 5, maxRequestsInQueue: 6 },
    { key: 'a' },
  ]);
});

test('more checks than a call takes go in several calls', async () => {
  const server = await serve(answered);
  const client = new SluiceClient({ url: server.url, maxCalls: 10 });

  const decisions = await Promise.all(keys(2500).map((key) => client.check(key)));

  expect(decisions).toEqual(
    keys(2500).map((key) => ({ approved: true, requestId: `id-of-${key}` })),
  );
  const sizes = server.calls.map(({ elements }) => elements.length);
  expect(sizes.sort((a, b) => b - a)).toEqual([1000, 1000, 500]);
});

test('no call is longer than Sluice takes, whatever characters the keys have', async () => {
  const longest: number[] = [];
  const server = await serve((call) => {
    longest.push(Number(call.headers['content-length']));
    call.answer();
  });
  const client = new SluiceClient({ url: server.url, maxCalls: 10 });
  const long = ['k', '\u0001', '\u20ac'].flatMap((char) => keys(1000, char.repeat(180)));

  await Promise.all(long.map((key) => client.check(key)));

  expect(Math.max(...longest)).toBeLessThanOrEqual(1024 * 1024);
  expect(server.calls.flatMap(({ elements }) => elements)).toHaveLength(3000);
});

test('a check that is too long for any call goes alone', async () => {
  const server = await serve(answered);
  const client = new SluiceClient({ url: server.url, maxCalls: 10 });

  await Promise.all([client.check('a'), client.check('b'.repeat(2 ** 20)), client.check('c')]);

  expect(server.calls.map(({ elements }) => elements.length)).toEqual([1, 1, 1]);
});

test('a check that can not be written as JSON harms no other', async () => {
  const server = await serve(answered);
  const client = new SluiceClient(server.url);

  const results = await Promise.allSettled([
    client.check('a'),
    client.check('b', { maxRequests: 5n as unknown as number }),
  ]);

  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
});

test('checks gather while `maxCalls` calls are under way', async () => {
  const server = await serve();
  const client = new SluiceClient({ url: server.url, maxCalls: 2 });
  const first = client.check('first');
  const firstCall = await server.call(0);
  const second = client.check('second');
  const secondCall = await server.call(1);

  const third = client.check('third');
  await new Promise(setImmediate);
  const fourth = client.check('fourth');
  await new Promise(setImmediate);
  expect(server.calls).toHaveLength(2);
  secondCall.answer();
  await second;
  const thirdCall = await server.call(2);
  thirdCall.answer();
  await Promise.all([third, fourth]);

  expect(thirdCall.elements).toEqual([{ key: 'third' }, { key: 'fourth' }]);
  firstCall.answer();
  await first;
});

test('the releases of a tick travel in one call', async () => {
  const server = await serve((call) => {
    call.answer((_, i) => (i === 0 ? { status: 200 } : { status: 404, error: 'not found' }));
  });
  const client = new SluiceClient(server.url);

  const released = await Promise.all([client.release('a', 'one'), client.release('b', 'two')]);

  expect(released).toEqual([true, false]);
  expect(server.calls).toMatchObject([
    {
      method: 'DELETE',
      path: '/rate',
      elements: [
        { key: 'a', request_id: 'one' },
        { key: 'b', request_id: 'two' },
      ],
    },
  ]);
});

test.each([{ maxCalls: 0 }, { timeoutMillis: NaN }])(
  'an invalid number is rejected: %p',
  (given) => {
    expect(() => new SluiceClient({ url: 'http://localhost', ...given })).toThrow(RangeError);
  },
);

test('calls use the fetch that is given', async () => {
  const server = await serve(answered);
  let sent = 0;
  const counting: typeof fetch = (input, init) => {
    sent += 1;
    return fetch(input, init);
  };
  const client = new SluiceClient({ url: `${server.url}/limits/`, fetch: counting });

  await Promise.all([client.check('a'), client.check('b')]);

  expect(sent).toBe(1);
  expect(server.calls).toMatchObject([{ path: '/limits/rate' }]);
});

test.each([
  [{ shadow: 'denied' }, true],
  [{ outagePolicy: 'allow' }, true],
  [{ outagePolicy: 'local' }, undefined],
  [{}, undefined],
])('the approval of a result with %j tells whether nothing counts it', async (mark, uncounted) => {
  const server = await serve((call) => {
    call.answer(() => ({ status: 200, request_id: 'id', ...mark }));
  });

  const decision = await new SluiceClient(server.url).check('a');

  expect(decision).toEqual({ approved: true, requestId: 'id', uncounted });
});

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

const unreachable = new SluiceClient('http://127.0.0.1:1');
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
    () => rateLimit(unreachable, withKey('maxWait')),
    'maxWait; did you mean maxWaitMillis?',
  ],
  [
    'limitedFetch',
    () => limitedFetch(unreachable, withKey('pauseKey')),
    'pauseKey; did you mean pausesKey?',
  ],
  [
    'limitedFetch, which has no signal',
    () => limitedFetch(unreachable, withKey('signal')),
    'signal; did you mean',
  ],
  [
    'limitedFetch, of what it reports',
    () =>
      limitedFetch(unreachable, any({ keyOf: () => 'a', reportsRemaining: { token: 'default' } })),
    'token; did you mean tokens?',
  ],
])('an unknown option of %s throws, and the error names the nearest one', (_, make, message) => {
  expect(make).toThrow(TypeError);
  expect(make).toThrow(`unknown option ${message}`);
});

test.each(['groups', { group: 'a' }, 1])('limitedFetch does not take %j for pausesKey', (given) => {
  const options = any({ keyOf: () => 'a', pausesKey: given });
  expect(() => limitedFetch(unreachable, options)).toThrow(
    new TypeError(`pausesKey must be true, false or 'group', not ${JSON.stringify(given)}`),
  );
});

test.each<[string, () => Promise<unknown>, string]>([
  ['check', () => unreachable.check('a', misspelt('hitz')), 'hitz; did you mean hits?'],
  [
    'check, of waits',
    () => unreachable.check('a', misspelt('maxWaitMillis')),
    'maxWaitMillis; did you mean',
  ],
  [
    'check, of objects',
    () => unreachable.check('a', misspelt('constructor')),
    'constructor; did you mean',
  ],
  [
    'wait',
    () => unreachable.wait('a', misspelt('MaxRequest')),
    'MaxRequest; did you mean maxRequests?',
  ],
  [
    'release',
    () => unreachable.release('a', 'b', misspelt('timeout')),
    'timeout; did you mean timeoutMillis?',
  ],
  ['correct', () => unreachable.correct('a', 'b', 1, misspelt('hits')), 'hits; did you mean'],
  ['renew', () => unreachable.renew('a', 'b', misspelt('hold')), 'hold; did you mean holdMillis?'],
  ['pause', () => unreachable.pause('a', 1, misspelt('sgnal')), 'sgnal; did you mean signal?'],
  [
    'reportRemaining',
    () => unreachable.reportRemaining('a', 1, misspelt('reset')),
    'reset; did you mean resetMillis?',
  ],
  ['permit', () => unreachable.permit('a', misspelt('waits')), 'waits; did you mean wait?'],
  [
    'withPermit',
    () => unreachable.withPermit('a', () => 1, misspelt('holdMilis')),
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
  ['check', () => unreachable.check('\ud800')],
  ['wait', () => unreachable.wait('\ud800')],
  ['release', () => unreachable.release('\ud800', 'a')],
  ['correct', () => unreachable.correct('\ud800', 'a', 1)],
  ['renew', () => unreachable.renew('\ud800', 'a')],
  ['pause', () => unreachable.pause('\ud800', 1)],
  ['reportRemaining', () => unreachable.reportRemaining('\ud800', 1)],
  ['permit', () => unreachable.permit('\ud800')],
])('a key that is not valid Unicode rejects, and the error says so: %s', async (_, call) => {
  const message = String.raw`key is not valid Unicode: "\ud800" has half of a surrogate pair`;

  await expect(call()).rejects.toThrow(new TypeError(message));
});

test('a request id that is not valid Unicode rejects, and the error says so', async () => {
  await expect(unreachable.renew('a', '\udfff')).rejects.toThrow('requestId is not valid Unicode');
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
    await asking.withPermit('b', () => until(renewed), { holdMillis: 4000 });
    expect(server.calls.map(({ method }) => method)).toEqual(
      expect.arrayContaining(['POST', 'PUT', 'DELETE']),
    );
  });
});

/** A server that approves everything but what the first request may get instead, and a client of it. */
async function approving(first?: (call: RecordedCall) => void) {
  const server = await serve((call) => {
    if (first && server.calls.length === 1) first(call);
    else if (call.path === '/rate') call.answer();
    else call.succeed({ request_id: 'id', waitMillis: 0 });
  });
  return { server, client: new SluiceClient(server.url) };
}

const LISTS = { lane: 'batch', group: 'tenant 7' };
const IN_QUERY = /[?&]lane=batch&group=tenant\+7(&|$)/;

test('checks of a bulk request name their lanes and groups', async () => {
  const { server, client } = await approving();

  await Promise.all([
    client.check('a', { lane: 'batch' }),
    client.check('b', { group: 'tenant 7' }),
    client.permit('c', { wait: false, lane: 'batch' }),
    client.check('d'),
  ]);

  expect(server.calls.map(({ elements }) => elements)).toEqual([
    [
      { key: 'a', lane: 'batch' },
      { key: 'b', group: 'tenant 7' },
      { key: 'c', lane: 'batch' },
      { key: 'd' },
    ],
  ]);
});

type Ask = (client: SluiceClient) => Promise<unknown>;

test.each<[string, Ask]>([
  ['a check with its quota', (client) => client.check('a', { ...LISTS, quota: true })],
  ['a wait', (client) => client.wait('a', LISTS)],
  ['a permit', (client) => client.permit('a', LISTS)],
  ['withPermit', (client) => client.withPermit('a', () => 1, { ...LISTS, holdMillis: false })],
  ['a peek', (client) => client.peek('a', LISTS)],
  [
    'limitedFetch',
    (client) => {
      const send = () => Promise.resolve(new Response());
      const call = limitedFetch(client, { keyOf: () => 'a', fetch: send, ...LISTS });
      return call('http://vendor');
    },
  ],
])('%s names its lane and its group', async (_, ask) => {
  const { server, client } = await approving();

  await ask(client);

  const [asked] = server.calls;
  expect(asked?.path).toMatch(IN_QUERY);
});

test('a wait of one request names its lane and its group', async () => {
  const { server } = await approving();

  await new SluiceClient({ url: server.url, keepMillis: 0 }).wait('a', LISTS);

  expect(server.calls[0]?.path).toMatch(IN_QUERY);
});

test('each request of a wait that keeps its place names its lane and its group', async () => {
  const { server, client } = await approving((call) => {
    call.place(1, 1000);
  });

  await client.wait('a', { ...LISTS, onProgress: () => undefined });

  const named = server.calls.map(({ path }) => IN_QUERY.test(path));
  expect(named).toEqual([true, true]);
});

test.each([false, true])(
  'rateLimit asks with the lane and the group of a request, with wait: %s',
  async (wait) => {
    const { server, client } = await approving();
    const limit = rateLimit<{ tenant: string }>(client, {
      keyOf: () => 'a',
      laneOf: () => 'batch',
      groupOf: ({ tenant }) => tenant,
      wait,
    });
    const response = { statusCode: 0, setHeader: () => 0, end: () => 0, on: () => 0 };

    await new Promise((next) => {
      limit({ tenant: 'tenant 7' }, response, next);
    });

    expect(server.calls[0]?.path).toMatch(IN_QUERY);
  },
);

test.each<[string, unknown, Error]>([
  ['empty', '', new RangeError('group must be 1 to 64 bytes of UTF-8, not 0')],
  ['too long', 'ä'.repeat(33), new RangeError('group must be 1 to 64 bytes of UTF-8, not 66')],
  [
    'not valid Unicode',
    '\ud800',
    new TypeError(String.raw`group is not valid Unicode: "\ud800" has half of a surrogate pair`),
  ],
  ['a number', 7, new TypeError('group must be a text, not 7')],
])('a group that is %s rejects before anything is sent', async (_, group, error) => {
  const options = { group: group as string };

  for (const asked of [
    unreachable.check('a', options),
    unreachable.wait('a', options),
    unreachable.peek('a', options),
    unreachable.permit('a', options),
    unreachable.withPermit('a', () => 1, options),
  ]) {
    await expect(asked).rejects.toThrow(error);
  }
});
