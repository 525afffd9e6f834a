import {
  type ClientOptions,
  SluiceClient,
  SluiceUnavailableError,
} from '../../../src/client/index.js';
import { debugState } from '../../support/debug-state.js';
import { type FaultProxy, startFaultProxy } from '../../support/fault-proxy.js';
import { freePort } from '../../support/free-port.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useApp } from '../../support/use-apps.js';
import { type RecordedCall, useRecordingServers } from '../../support/client/recording-server.js';

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
    'too many approvals of the key',
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
      message: 'not an answer from Sluice',
      mayHaveCounted: true,
    });
  });
});

describe('on a network that fails', () => {
  const app = useApp();
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
