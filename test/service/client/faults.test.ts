import { getEventListeners } from 'node:events';

import {
  type ClientOptions,
  SluiceClient,
  SluiceTimeoutError,
  SluiceUnavailableError,
} from '../../../clients/node/src/index.js';
import {
  type RecordedCall,
  type RecordingServer,
  useRecordingServers,
} from '../../support/client/recording-server.js';
import { debugState } from '../../support/debug-state.js';
import { type FaultProxy, startFaultProxy } from '../../support/fault-proxy.js';
import { freePort } from '../../support/free-port.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useApp } from '../../support/use-apps.js';

const serve = useRecordingServers();
/** Its waits are single requests. Those that keep their places are in kept-waits.test.ts. */
const clientOf = (url: string, options: Partial<ClientOptions> = {}) =>
  new SluiceClient({ url, keepMillis: 0, ...options });

const ways = [
  ['check', (client: SluiceClient, key: string, options = {}) => client.check(key, options)],
  ['wait', (client: SluiceClient, key: string, options = {}) => client.wait(key, options)],
] as const;

/** The first call fails with this status and error, and later calls are approved. */
const failsOnce = (status: number, error: string, retryAfter?: number) => {
  let calls = 0;
  return (call: RecordedCall) => {
    calls += 1;
    if (calls === 1) call.fail(status, error, retryAfter);
    else if (call.elements.length > 0) call.answer();
    else call.succeed({ request_id: 'id' });
  };
};

describe.each(ways)('a %s', (_, ask) => {
  test.each([
    'store full: no room for another key',
    'the key has too many approvals, holds or groups: try again later, or raise MAX_IDS_PER_KEY, MAX_HOLDS_PER_KEY or MAX_GROUPS_PER_KEY',
    'shutting down',
    'too many waiters on this replica',
    'too many waiters of this caller on this replica',
  ])('that is answered "%s" is sent again', async (error) => {
    const server = await serve(failsOnce(503, error, 0.01));

    expect(await ask(clientOf(server.url), 'a')).toMatchObject({ approved: true });

    expect(server.calls).toHaveLength(2);
  });

  test.each([
    ['three times', undefined, 4],
    ['as often as the client is told', 1, 2],
    ['never, if the client is told so', 0, 1],
  ])('is sent again %s', async (_, retries, sent) => {
    const server = await serve((call) => {
      call.fail(503, 'shutting down', 0.01);
    });

    await expect(ask(clientOf(server.url, { retries }), 'a')).rejects.toMatchObject({
      message: 'shutting down',
      status: 503,
      mayHaveCounted: false,
    });

    expect(server.calls).toHaveLength(sent);
  });

  test.each([
    [503, 'store unavailable'],
    [503, 'no server is available to handle this request'],
    [500, 'internal error'],
    [502, 'bad gateway'],
  ])('that may have counted is not sent again: %d %s', async (status, error) => {
    const server = await serve(failsOnce(status, error, 1));

    const failure: unknown = await ask(clientOf(server.url), 'a').catch(
      (reason: unknown) => reason,
    );

    expect(failure).toBeInstanceOf(SluiceUnavailableError);
    expect(failure).toMatchObject({ status, message: error, mayHaveCounted: true });
    expect(failure).toMatchObject({ retryAfterSeconds: 1 });
    expect(server.calls).toHaveLength(1);
  });

  test('is not sent again if its time would be over by then', async () => {
    const server = await serve(failsOnce(503, 'shutting down', 60));

    await expect(ask(clientOf(server.url), 'a', { timeoutMillis: 5000 })).rejects.toMatchObject({
      message: 'shutting down',
      retryAfterSeconds: 60,
    });

    expect(server.calls).toHaveLength(1);
  });

  test('that is aborted while it pauses is not sent again', async () => {
    const leaving = new AbortController();
    const server = await serve(failsOnce(503, 'shutting down', 3600));
    const asked = ask(clientOf(server.url, { timeoutMillis: Infinity }), 'a', {
      signal: leaving.signal,
    });
    await server.call(0);

    leaving.abort();

    await expect(asked).rejects.toMatchObject({ name: 'AbortError' });
    expect(server.calls).toHaveLength(1);
  });

  test('that reaches no server has not counted', async () => {
    const client = clientOf(`http://127.0.0.1:${await freePort()}`);

    const failure: unknown = await ask(client, 'a').catch((reason: unknown) => reason);

    expect(failure).toMatchObject({
      name: 'SluiceUnavailableError',
      message: 'Sluice is unreachable',
      status: undefined,
      mayHaveCounted: false,
      cause: { code: 'ECONNREFUSED' },
    });
  });

  test('fails if the answer is not from Sluice', async () => {
    const server = await serve((call) => {
      call.succeed({ hello: 'world' });
    });

    await expect(ask(clientOf(server.url), 'a')).rejects.toMatchObject({
      message: expect.stringMatching(
        /^not an answer from Sluice: (?:request_id|the body) must /,
      ) as string,
      mayHaveCounted: true,
    });
  });
});

describe('on a network that fails', () => {
  const app = useApp(() => ({ WINDOW_MILLIS: '3600000' }));
  let proxy: FaultProxy;
  let url: string;
  beforeEach(async () => {
    proxy = await startFaultProxy(Number(new URL(app.url).port));
    url = `http://127.0.0.1:${proxy.port}`;
  });
  afterEach(() => {
    proxy.stop();
  });

  test.each(ways)('a %s is sent again if the server refused the connection', async (_, ask) => {
    proxy.refuse();
    const untilItAccepts: typeof fetch = async (input, init) => {
      try {
        return await fetch(input, init);
      } catch (error) {
        await proxy.accept();
        throw error;
      }
    };
    const client = clientOf(url, { fetch: untilItAccepts });

    expect(await ask(client, uniqueKey())).toMatchObject({ approved: true });
  });

  test.each(ways)('a %s whose answer is lost is not sent again', async (_, ask) => {
    const key = uniqueKey();
    const client = clientOf(url);
    // A connection that is kept, as between two requests under load.
    await client.check(uniqueKey());
    const cut = proxy.toClient.cutAfter(0);

    const failure: unknown = await ask(client, key).catch((reason: unknown) => reason);

    await cut;
    expect(failure).toMatchObject({
      name: 'SluiceUnavailableError',
      message: 'the answer from Sluice was lost',
      mayHaveCounted: true,
      cause: { code: 'ECONNRESET' },
    });
    expect((await debugState(app.url, key)).NumApprovedThisWindow).toBe(1);
  });
});

test('a release is sent again if it was not carried out', async () => {
  const server = await serve((call) => {
    if (server.calls.length === 1) call.fail(503, 'shutting down', 0.01);
    else call.answer(() => ({ status: 200 }));
  });

  expect(await clientOf(server.url).release('a', 'one')).toBe(true);

  expect(server.calls.map(({ method }) => method)).toEqual(['DELETE', 'DELETE']);
});

test('only the elements of a call that did not count are sent again', async () => {
  const server = await serve((call) => {
    call.answer(({ key }) => {
      if (key === 'lost') return { status: 503, error: 'store unavailable', retryAfter: 1 };
      if (server.calls.length > 1) return { status: 200, request_id: 'id' };
      return { status: 503, error: 'shutting down', retryAfter: 0.01 };
    });
  });
  const client = clientOf(server.url);

  const [again, lost] = await Promise.allSettled([client.check('again'), client.check('lost')]);

  expect(again).toMatchObject({ value: { approved: true } });
  expect(lost).toMatchObject({ reason: { message: 'store unavailable', mayHaveCounted: true } });
  expect(server.calls.map(({ elements }) => elements)).toEqual([
    [{ key: 'again' }, { key: 'lost' }],
    [{ key: 'again' }],
  ]);
});

test('a denied check is not sent again', async () => {
  const server = await serve((call) => {
    call.answer(() => ({ status: 429, error: 'rate limit exceeded', retryAfter: 1 }));
  });

  expect(await clientOf(server.url).check('a')).toEqual({
    approved: false,
    retryAfterSeconds: 1,
  });

  expect(server.calls).toHaveLength(1);
});

const approve = (call: RecordedCall): void => {
  if (call.elements.length > 0) call.answer();
  else call.succeed({ request_id: 'id' });
};

/** As a replica does that stops. */
const stop = (call: RecordedCall): void => {
  call.stopping();
  call.fail(503, 'shutting down', 3600);
};

const HELD = { holdMillis: 30_000 };
type Ask = (client: SluiceClient, key: string) => Promise<unknown>;
const check: Ask = (client, key) => client.check(key);
const wait: Ask = (client, key) => client.wait(key);
const asked: readonly (readonly [string, Ask])[] = [
  ['check', check],
  ['check with quota', (client, key) => client.check(key, { quota: true })],
  ['wait', wait],
];

const pathsOf = ({ calls }: RecordingServer) => calls.map(({ path }) => path);
const pathOfWait = (key: string) => `/rate/${key}?canWait=true`;
/**
 * The client asks the first, and has no retries: what is sent again goes to the second at once. Its waits are single
 * requests; those that keep their places are in kept-waits.test.ts.
 */
const clientOfAll = (...servers: readonly { url: string }[]) =>
  new SluiceClient({ url: servers.map(({ url }) => url), retries: 0, keepMillis: 0 });

test.each(asked)('a %s goes to the second address if the first refuses it', async (_, ask) => {
  const refusing = { url: `http://127.0.0.1:${await freePort()}` };
  const second = await serve(approve);

  expect(await ask(clientOfAll(refusing, second), 'a')).toMatchObject({ approved: true });
});

test.each(asked)('a %s goes to the second address if the first stops', async (_, ask) => {
  const stopping = await serve(stop);
  const second = await serve(approve);

  expect(await ask(clientOfAll(stopping, second), 'a')).toMatchObject({ approved: true });
});

test('an element of a bulk request goes to the second address if the first stops', async () => {
  const stopping = await serve((call) => {
    call.stopping();
    call.answer(({ key }) =>
      key === 'late'
        ? { status: 503, error: 'shutting down', retryAfter: 3600 }
        : { status: 200, request_id: 'id' },
    );
  });
  const second = await serve(approve);
  const client = clientOfAll(stopping, second);

  await Promise.all([client.check('soon'), client.check('late')]);

  expect(second.calls.map(({ elements }) => elements)).toEqual([[{ key: 'late' }]]);
});

test('an address that has failed gets no further request until the next one fails', async () => {
  const first = await serve((call) => {
    if (first.calls.length === 1) stop(call);
    else approve(call);
  });
  const second = await serve((call) => {
    if (second.calls.length === 3) stop(call);
    else approve(call);
  });
  const client = clientOfAll(first, second);

  for (const key of ['a', 'b', 'c', 'd']) await client.wait(key);

  expect(pathsOf(first)).toEqual(['a', 'c', 'd'].map(pathOfWait));
  expect(pathsOf(second)).toEqual(['a', 'b', 'c'].map(pathOfWait));
});

test('an address that says that it stops gets no further request', async () => {
  const stopping = await serve((call) => {
    call.stopping();
    approve(call);
  });
  const second = await serve(approve);
  const client = clientOfAll(stopping, second);

  await client.wait('a');
  await client.wait('b');

  expect(pathsOf(stopping)).toEqual([pathOfWait('a')]);
  expect(pathsOf(second)).toEqual([pathOfWait('b')]);
});

test('a request fails once all addresses have failed it', async () => {
  const refusing = { url: `http://127.0.0.1:${await freePort()}` };
  const stopping = await serve(stop);

  await expect(clientOfAll(refusing, stopping).wait('a')).rejects.toMatchObject({
    message: 'shutting down',
    mayHaveCounted: false,
  });
  expect(stopping.calls).toHaveLength(1);
});

describe('a lost answer', () => {
  const losing = () =>
    serve((call) => {
      call.lose();
    });

  test('of a held wait leads to another, since nobody renews what may be approved', async () => {
    const [first, second] = [await losing(), await serve(approve)];

    const client = clientOfAll(first, second);
    expect(await client.wait('a', HELD)).toMatchObject({ approved: true });

    expect([first.calls.length, second.calls.length]).toEqual([1, 1]);
  });

  test('of a held wait may have counted, whatever comes after it', async () => {
    const [first, second] = [await losing(), await serve(stop)];

    const held = clientOfAll(first, second).wait('a', HELD);

    await expect(held).rejects.toMatchObject({ message: 'shutting down', mayHaveCounted: true });
  });

  test.each([
    ...asked,
    ['held check', ((client, key) => client.check(key, HELD)) satisfies Ask] as const,
  ])('of a %s does not, since both may be approved', async (_, ask) => {
    const [first, second] = [await losing(), await serve(approve)];

    await expect(ask(clientOfAll(first, second), 'a')).rejects.toMatchObject({
      message: 'the answer from Sluice was lost',
      mayHaveCounted: true,
    });

    expect([first.calls.length, second.calls.length]).toEqual([1, 0]);
  });

  const changes: readonly (readonly [string, Ask])[] = [
    ['release', (client, key) => client.release(key, 'id')],
    ['renewal', (client, key) => client.renew(key, 'id')],
    ['correction', (client, key) => client.correct(key, 'id', 2)],
    ['pause', (client, key) => client.pause(key, 1000)],
  ];
  test.each(changes)('of a %s leads to another, which changes nothing more', async (_, change) => {
    const first = await losing();
    const second = await serve((call) => {
      if (call.elements.length > 0) call.answer(() => ({ status: 200 }));
      else call.succeed({});
    });

    await change(clientOfAll(first, second), 'a');

    expect([first.calls.length, second.calls.length]).toEqual([1, 1]);
  });
});

test('a client without an address is an error', () => {
  expect(() => new SluiceClient({ url: [] })).toThrow('url must have an address');
  expect(() => new SluiceClient({ url: 'http://localhost', retries: -1 })).toThrow(
    'retries must be at least 0, not -1',
  );
});

test('an aborted check leaves the others of its call alone, and its late approval is released', async () => {
  const server = await serve();
  const client = new SluiceClient(server.url);
  const leaving = new AbortController();
  const left = client.check('left', { signal: leaving.signal });
  const stays = client.check('stays');
  const call = await server.call(0);

  leaving.abort(new Error('changed my mind'));

  await expect(left).rejects.toThrow('changed my mind');
  call.answer();
  expect(await stays).toEqual({ approved: true, requestId: 'id-of-stays' });
  const release = await server.call(1);
  release.answer(() => ({ status: 200 }));
  expect(release).toMatchObject({
    method: 'DELETE',
    elements: [{ key: 'left', request_id: 'id-of-left' }],
  });
});

test('a check that is aborted before its call is sent is not in the call', async () => {
  const server = await serve((call) => {
    call.answer();
  });
  const client = new SluiceClient(server.url);
  const leaving = new AbortController();
  const left = client.check('left', { signal: leaving.signal });
  const stays = client.check('stays');

  leaving.abort();

  await expect(left).rejects.toMatchObject({ name: 'AbortError' });
  await stays;
  expect(server.calls.map(({ elements }) => elements)).toEqual([[{ key: 'stays' }]]);
});

test('nothing is sent if the signal is already aborted', async () => {
  const server = await serve((call) => {
    call.answer();
  });
  const client = new SluiceClient(server.url);
  const signal = AbortSignal.abort();

  await expect(client.check('a', { signal })).rejects.toBe(signal.reason);
  await expect(client.wait('a', { signal })).rejects.toBe(signal.reason);
  await client.check('b');

  expect(server.calls.flatMap(({ elements }) => elements)).toEqual([{ key: 'b' }]);
});

test('many calls have one listener of their signal, since Node warns of many, and none once they end', async () => {
  const server = await serve();
  const client = new SluiceClient(server.url);
  const { signal } = new AbortController();
  const listeners = () => getEventListeners(signal, 'abort').length;
  const ends: (() => void)[] = [];
  const work = () => new Promise<void>((resolve) => ends.push(resolve));

  const checks = [client.check('a', { signal }), client.check('a', { signal })];
  (await server.call(0)).answer();
  await Promise.all(checks);
  const permits = [1, 2].map(() => client.withPermit('b', work, { signal }));
  for (const index of [1, 2]) (await server.call(index)).succeed({ request_id: 'id' });
  await until(() => ends.length === 2);
  const waits = [client.wait('c', { signal }), client.wait('c', { signal })];
  expect(listeners()).toBe(1);

  for (const end of ends) end();
  for (const index of [3, 4, 5]) {
    const call = await server.call(index);
    if (call.elements.length > 0) call.answer(() => ({ status: 200 }));
    else call.succeed({ request_id: 'id' });
  }
  await Promise.all([...permits, ...waits]);
  expect(listeners()).toBe(0);
});

test('a check without an answer times out, and may have counted', async () => {
  const server = await serve();
  const client = new SluiceClient({ url: server.url, timeoutMillis: 50 });

  const error: unknown = await client.check('a').catch((reason: unknown) => reason);

  expect(error).toBeInstanceOf(SluiceTimeoutError);
  expect(error).toMatchObject({ message: 'no answer within 50 ms', mayHaveCounted: true });
});

test.each([
  ['with others', {}],
  ['alone', { quota: true }],
])(
  'an approval is released that arrives after its check, sent %s, has timed out',
  async (_, options) => {
    const server = await serve();
    const client = new SluiceClient(server.url);
    const check = client.check('a', { timeoutMillis: 50, ...options });
    const call = await server.call(0);
    await expect(check).rejects.toThrow(SluiceTimeoutError);

    if (call.elements.length > 0) call.answer(() => ({ status: 200, request_id: 'late' }));
    else call.succeed({ request_id: 'late' });

    const release = await server.call(1);
    release.answer(() => ({ status: 200 }));
    expect(release).toMatchObject({
      method: 'DELETE',
      elements: [{ key: 'a', request_id: 'late' }],
    });
  },
);

test('a check that times out before it is sent has not counted', async () => {
  const server = await serve();
  const client = new SluiceClient({ url: server.url, maxCalls: 1 });
  const first = client.check('first');
  const call = await server.call(0);

  const second = client.check('second', { timeoutMillis: 50 });

  await expect(second).rejects.toMatchObject({
    name: 'SluiceTimeoutError',
    mayHaveCounted: false,
  });
  call.answer();
  await first;
});

test.each([Infinity, 2 ** 40])('a check may have any time limit: %d ms', async (timeoutMillis) => {
  const server = await serve();
  const client = new SluiceClient({ url: server.url, timeoutMillis });
  const check = client.check('a');
  const call = await server.call(0);
  await client.release('b', 'id', { timeoutMillis: 50 }).catch(() => undefined);

  call.answer();

  expect(await check).toMatchObject({ approved: true });
});

test('a call that hangs makes room for others when its last check times out', async () => {
  const server = await serve();
  const client = new SluiceClient({ url: server.url, maxCalls: 1, timeoutMillis: 50 });
  await expect(client.check('first')).rejects.toThrow(SluiceTimeoutError);

  const second = client.check('second', { timeoutMillis: 30_000 });
  (await server.call(1)).answer();

  expect(await second).toMatchObject({ approved: true });
});
