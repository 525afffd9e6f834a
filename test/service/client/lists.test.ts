import { limitedFetch, rateLimit, SluiceClient } from '../../../src/client/index.js';
import { type RecordedCall, useRecordingServers } from '../../support/client/recording-server.js';

const serve = useRecordingServers();

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

const unreachable = new SluiceClient('http://127.0.0.1:1');

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

test('a lane that Sluice does not know rejects, and the error names the lanes', async () => {
  const message = 'lane must be one of interactive, batch';
  const server = await serve((call) => {
    call.fail(400, message);
  });

  const asked = new SluiceClient(server.url).wait('a', { lane: 'bulk' });

  await expect(asked).rejects.toMatchObject({ status: 400, message });
  expect(server.calls).toHaveLength(1);
});
