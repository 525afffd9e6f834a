import { SluiceClient } from '../../../src/client/index.js';
import { useRecordingServers } from '../../support/client/recording-server.js';

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

test('a rejection or denial concerns one element of a call only', async () => {
  const server = await serve((call) => {
    call.answer(({ key }) =>
      key === 'bad'
        ? { status: 403, error: 'the token does not allow this key' }
        : { status: 429, error: 'rate limit exceeded', retryAfter: 7 },
    );
  });
  const client = new SluiceClient(server.url);

  const [bad, full] = await Promise.allSettled([client.check('bad'), client.check('full')]);

  expect(bad).toMatchObject({
    reason: { name: 'SluiceError', status: 403, message: 'the token does not allow this key' },
  });
  expect(full).toMatchObject({ value: { approved: false, retryAfterSeconds: 7 } });
});

test('an address with a path is put before `/rate`', async () => {
  const server = await serve(answered);

  await new SluiceClient(`${server.url}/limits/`).check('a');

  expect(server.calls[0]!.path).toBe('/limits/rate');
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
