import {
  type ClientOptions,
  limitedFetch,
  SluiceClient,
  SluiceTimeoutError,
  type WaitOptions,
  type WaitProgress,
} from '../../../clients/node/src/index.js';
import {
  type RecordedCall,
  type RecordingServer,
  useRecordingServers,
} from '../../support/client/recording-server.js';
import { freePort } from '../../support/free-port.js';
import { until } from '../../support/until.js';

const serve = useRecordingServers();
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const TAKEN_OVER = 'a later check with this requestId has taken over';
const USED = 'the approval with this requestId was released, or has lapsed';

const approve = (call: RecordedCall): void => {
  if (call.elements.length > 0) call.answer(() => ({ status: 200 }));
  else call.succeed({ request_id: 'id' });
};
/** The first call is answered so, and later calls are approved. */
const first = (answer: (call: RecordedCall) => void) => {
  let calls = 0;
  return (call: RecordedCall): void => {
    calls += 1;
    if (calls === 1) answer(call);
    else approve(call);
  };
};
const lose = (call: RecordedCall): void => {
  call.lose();
};
const handOver = (call: RecordedCall): void => {
  call.stopping();
  call.fail(503, 'shutting down; another replica has the place', 0);
};

const queryOf = ({ path }: RecordedCall) => new URL(path, 'http://a').searchParams;
const idOf = (call: RecordedCall) => queryOf(call).get('requestId');
/** How long a request asks Sluice to wait, in s. */
const secondsOf = ({ headers }: RecordedCall) =>
  Number(/^wait=(\d+)$/.exec(String(headers.prefer))![1]);
const waitsOf = ({ calls }: RecordingServer) => calls.filter(({ method }) => method === 'POST');
const releasesOf = ({ calls }: RecordingServer) =>
  calls.filter(({ method }) => method === 'DELETE').flatMap(({ elements }) => elements);
/** A request that fails is sent again at the next address, or not at all. */
const withoutRetries = (
  servers: readonly { url: string }[],
  options: Partial<ClientOptions> = {},
) => new SluiceClient({ url: servers.map(({ url }) => url), retries: 0, ...options });

test('a wait is a chain of requests with one id, which it chooses', async () => {
  const server = await serve(
    first((call) => {
      call.place(3, 8200);
    }),
  );
  const client = new SluiceClient(server.url);

  expect(await client.wait('a', { hits: 2 })).toEqual({ approved: true, requestId: 'id' });
  await client.wait('a');

  const [one, other, later] = server.calls as [RecordedCall, RecordedCall, RecordedCall];
  expect(one.headers.prefer).toBe('wait=25');
  expect(Object.fromEntries(queryOf(one))).toEqual({
    canWait: 'true',
    hits: '2',
    requestId: expect.stringMatching(UUID) as string,
    keepMillis: '30000',
  });
  expect([other.path, other.headers.prefer]).toEqual([one.path, 'wait=25']);
  expect(idOf(later)).not.toBe(idOf(one));
});

test('the length of its requests and the time for which its place is kept are options', async () => {
  const server = await serve(approve);
  const client = new SluiceClient({ url: server.url, keepMillis: 60_000, longPollMillis: 9500 });

  await client.wait('a');

  const call = await server.call(0);
  expect([queryOf(call).get('keepMillis'), call.headers.prefer]).toEqual(['60000', 'wait=10']);
});

test('with 0 as that time, a wait is one request without an id', async () => {
  const server = await serve(approve);

  await new SluiceClient({ url: server.url, keepMillis: 0 }).wait('a');

  const call = await server.call(0);
  expect([call.path, call.headers.prefer]).toEqual(['/rate/a?canWait=true', undefined]);
});

describe('a wait asks again with its id', () => {
  const failures: readonly (readonly [string, (call: RecordedCall) => void])[] = [
    ['its answer is lost', lose],
    ['its replica stops', handOver],
    [
      'its replica has begun to stop',
      (call) => {
        call.stopping();
        call.fail(503, 'shutting down', 3600);
      },
    ],
  ];
  test.each(failures)('at once at the next address if %s', async (_, fail) => {
    const [one, other] = [await serve(fail), await serve(approve)];

    expect(await withoutRetries([one, other]).wait('a')).toMatchObject({ approved: true });

    expect(idOf(await other.call(0))).toBe(idOf(await one.call(0)));
  });

  test('at once at the same address if the replica stops that this led to', async () => {
    const server = await serve(first(handOver));

    expect(await withoutRetries([server]).wait('a')).toMatchObject({ approved: true });

    expect(idOf(await server.call(1))).toBe(idOf(await server.call(0)));
  });

  test.each([
    [503, 'store unavailable'],
    [503, 'no server is available to handle this request'],
    [502, 'bad gateway'],
    [500, 'internal error'],
  ])('after a %d %s', async (status, error) => {
    const server = await serve(
      first((call) => {
        call.fail(status, error, 0.01);
      }),
    );

    expect(await new SluiceClient(server.url).wait('a')).toMatchObject({ approved: true });

    expect(idOf(await server.call(1))).toBe(idOf(await server.call(0)));
  });

  test('at the next address if an answer does not come in time', async () => {
    const [silent, other] = [await serve(), await serve(approve)];
    const options = { longPollMillis: 1000, timeoutMillis: 50 };

    expect(await withoutRetries([silent, other], options).wait('a')).toMatchObject({
      approved: true,
    });

    expect(idOf(await other.call(0))).toBe(idOf(await silent.call(0)));
  });

  test('at most once a second while another request takes its place over', async () => {
    let endedAt = 0;
    const server = await serve((call) => {
      endedAt = performance.now();
      if (server.calls.length < 3) call.fail(409, TAKEN_OVER);
      else approve(call);
    });
    const begunAt = performance.now();

    expect(await new SluiceClient(server.url).wait('a')).toMatchObject({ approved: true });

    expect(new Set(server.calls.map(idOf)).size).toBe(1);
    expect(server.calls).toHaveLength(3);
    // A timer may fire a part of a millisecond early.
    expect(endedAt - begunAt).toBeGreaterThan(1900);
  });

  test('in shorter requests if two are cut', async () => {
    const receivedAt: number[] = [];
    const cutAt: number[] = [];
    const server = await serve((call) => {
      receivedAt.push(performance.now());
      const cut = () => {
        cutAt.push(performance.now());
        lose(call);
      };
      if (server.calls.length > 2) approve(call);
      else setTimeout(cut, 1100);
    });

    await new SluiceClient(server.url).wait('a');

    const [first, second, third] = server.calls.map(secondsOf);
    expect([first, second]).toEqual([25, 25]);
    // Half of what the second lasted: it was sent after the first was cut, and was over before the third.
    expect(third).toBeGreaterThanOrEqual(Math.ceil((cutAt[1]! - receivedAt[1]!) / 2000));
    expect(third).toBeLessThanOrEqual(Math.ceil((receivedAt[2]! - cutAt[0]!) / 2000));
  });
});

test('a wait whose approval has lapsed before it was told asks with another id', async () => {
  const server = await serve(
    first((call) => {
      call.fail(409, USED);
    }),
  );

  expect(await new SluiceClient(server.url).wait('a')).toMatchObject({ approved: true });

  expect(idOf(await server.call(1))).not.toBe(idOf(await server.call(0)));
});

describe('a wait that fails', () => {
  test('goes on without retries while its place may be kept, and then gives the place back', async () => {
    const server = await serve((call) => {
      if (call.elements.length > 0) approve(call);
      else if (server.calls.length === 1) call.place(1, 1000);
      else call.fail(503, 'store unavailable', 0.1);
    });
    const client = withoutRetries([server], { keepMillis: 4000, longPollMillis: 1 });

    await expect(client.wait('a')).rejects.toMatchObject({
      message: 'store unavailable',
      mayHaveCounted: true,
    });

    await server.call(waitsOf(server).length);
    expect(waitsOf(server).length).toBeGreaterThan(3);
    expect(releasesOf(server)).toEqual([{ key: 'a', request_id: idOf(await server.call(0)) }]);
  });

  test('goes on no longer than it wants to wait', async () => {
    const server = await serve(lose);
    const client = withoutRetries([server]);

    await expect(client.wait('a', { maxWaitMillis: 1 })).rejects.toMatchObject({
      message: 'the answer from Sluice was lost',
      mayHaveCounted: true,
    });

    expect(waitsOf(server)).toHaveLength(1);
  });

  test('has no place and gives nothing back if it reached no server', async () => {
    const nobody = { url: `http://127.0.0.1:${await freePort()}` };

    await expect(withoutRetries([nobody, nobody]).wait('a')).rejects.toMatchObject({
      message: 'Sluice is unreachable',
      mayHaveCounted: false,
    });
  });

  test('gives its place back if it is rejected after it had one', async () => {
    const server = await serve((call) => {
      if (call.elements.length > 0) approve(call);
      else if (server.calls.length === 1) call.place(1, 1000);
      else call.fail(401, 'unknown token');
    });

    await expect(new SluiceClient(server.url).wait('a')).rejects.toMatchObject({ status: 401 });

    const { elements } = await server.call(2);
    expect(elements).toEqual([{ key: 'a', request_id: idOf(await server.call(0)) }]);
  });
});

describe('a caller that leaves', () => {
  type Leave = (leaving: AbortController, server: RecordingServer) => unknown;
  const ways: readonly (readonly [string, WaitOptions, Leave])[] = [
    [
      'by an abort',
      {},
      async (leaving, server) => {
        await server.call(0);
        leaving.abort();
      },
    ],
    ['by a time-out', { timeoutMillis: 300 }, () => undefined],
  ];

  test.each(ways)('%s releases by id', async (_, options, leave) => {
    const server = await serve((call) => {
      if (call.elements.length > 0) approve(call);
    });
    // The first request may be out of time before it arrives.
    const asked: string[] = [];
    const noting: typeof fetch = (input, init) => {
      asked.push(input as string);
      return fetch(input, init);
    };
    const leaving = new AbortController();
    const client = new SluiceClient({ url: server.url, fetch: noting });
    const waiting = client.wait('a', { signal: leaving.signal, ...options });

    await leave(leaving, server);

    const error: unknown = await waiting.catch((reason: unknown) => reason);
    if (options.timeoutMillis === undefined) expect(error).toBe(leaving.signal.reason);
    else expect(error).toBeInstanceOf(SluiceTimeoutError);
    const released = await until(() => releasesOf(server)[0]);
    const id = new URL(asked[0]!).searchParams.get('requestId');
    expect(released).toEqual({ key: 'a', request_id: id });
  });

  test('releases once more after a second if Sluice does not know the id yet', async () => {
    const server = await serve((call) => {
      if (call.elements.length > 0) {
        call.answer(() => ({ status: 404, error: 'request not found' }));
      }
    });
    const leaving = new AbortController();
    const waiting = new SluiceClient(server.url).wait('a', { signal: leaving.signal });
    const asked = await server.call(0);

    leaving.abort();

    await expect(waiting).rejects.toBe(leaving.signal.reason);
    await server.call(2);
    const element = { key: 'a', request_id: idOf(asked) };
    expect(releasesOf(server)).toEqual([element, element]);
  });

  test('between two requests releases by id', async () => {
    const server = await serve((call) => {
      if (call.elements.length > 0) approve(call);
      else call.fail(503, 'store unavailable', 3600);
    });
    const leaving = new AbortController();
    const waiting = new SluiceClient(server.url).wait('a', { signal: leaving.signal });
    const asked = await server.call(0);

    leaving.abort();

    await expect(waiting).rejects.toBe(leaving.signal.reason);
    expect((await server.call(1)).elements).toEqual([{ key: 'a', request_id: idOf(asked) }]);
    expect(waitsOf(server)).toHaveLength(1);
  });
});

describe('the longest wait', () => {
  /**
   * Waits, and demands that each request asks for what is left of the wait when it is sent. That is known from the times
   * before and after: it is sent after the one before was received, and a second after that was sent.
   */
  const waitAtMost = async (
    maxWaitMillis: number,
    server: RecordingServer,
    receivedAt: readonly number[],
  ) => {
    const before = performance.now();
    const waiting = new SluiceClient(server.url).wait('a', { maxWaitMillis });
    const after = performance.now();
    const decision = await waiting;
    const secondsAt = (begunAt: number, at: number) => {
      const millisLeft = Math.max(0, begunAt + maxWaitMillis - at);
      return Math.ceil(Math.min(25_000, millisLeft) / 1000);
    };
    let sentAfter = before;
    for (const [i, call] of waitsOf(server).entries()) {
      expect(secondsOf(call)).toBeGreaterThanOrEqual(secondsAt(before, receivedAt[i]!));
      expect(secondsOf(call)).toBeLessThanOrEqual(secondsAt(after, sentAfter));
      // A timer may fire a little early.
      sentAfter = Math.max(receivedAt[i]!, sentAfter + 990);
    }
    return decision;
  };

  test('is the same in all requests, the last of which ends with it', async () => {
    const receivedAt: number[] = [];
    const server = await serve((call) => {
      receivedAt.push(performance.now());
      if (server.calls.length === 3) call.fail(429, 'rate limit exceeded', 7);
      else call.place(1, 1000);
    });

    const denied = await waitAtMost(26_500, server, receivedAt);

    expect(denied).toEqual({ approved: false, retryAfterSeconds: 7 });
    expect(server.calls).toHaveLength(3);
    expect(new Set(server.calls.map(({ path }) => path)).size).toBe(1);
  });

  test('bounds the wait also if the place was lost, and Sluice counts from another', async () => {
    const receivedAt: number[] = [];
    const server = await serve((call) => {
      if (call.elements.length > 0) return approve(call);
      receivedAt.push(performance.now());
      call.place(1, 4200);
    });

    const denied = await waitAtMost(1500, server, receivedAt);

    expect(denied).toEqual({ approved: false, retryAfterSeconds: 5 });
    await server.call(waitsOf(server).length);
    expect(releasesOf(server)).toEqual([{ key: 'a', request_id: idOf(await server.call(0)) }]);
  });
});

describe('progress', () => {
  type Ask = (
    client: SluiceClient,
    onProgress: (progress: WaitProgress) => void,
  ) => Promise<unknown>;
  const target = 'data:text/plain,hello';
  const ways: readonly (readonly [string, Ask])[] = [
    ['wait', (client, onProgress) => client.wait('a', { onProgress })],
    ['permit', (client, onProgress) => client.permit('a', { onProgress })],
    [
      'withPermit',
      (client, onProgress) =>
        client.withPermit('a', () => 'done', { onProgress, holdMillis: false }),
    ],
    [
      'limitedFetch',
      (client, onProgress) => limitedFetch(client, { keyOf: () => 'a', onProgress })(target),
    ],
  ];

  test.each(ways)('is told at once, by %s', async (_, ask) => {
    const server = await serve(
      first((call) => {
        call.place(8, 100);
      }),
    );
    const seen: WaitProgress[] = [];

    await ask(new SluiceClient(server.url), (progress) => seen.push(progress));

    expect(seen).toEqual([{ position: 8, waitMillis: 100 }]);
  });

  test('is told after each request', async () => {
    const server = await serve((call) => {
      if (server.calls.length > 2) approve(call);
      else call.place(9 - server.calls.length, 100);
    });
    const seen: number[] = [];
    const onProgress = ({ position }: WaitProgress) => seen.push(position);

    await new SluiceClient(server.url).wait('a', { onProgress });

    expect(seen).toEqual([8, 7]);
    const prefers = waitsOf(server).map(({ headers }) => headers.prefer);
    expect(prefers).toEqual(['wait=0', 'wait=25', 'wait=25']);
  });

  test('that fails ends the wait, and gives its place back', async () => {
    const server = await serve((call) => {
      if (call.elements.length > 0) approve(call);
      else call.place(1, 100);
    });
    const onProgress = () => {
      throw new Error('no place to show it');
    };

    const waiting = new SluiceClient(server.url).wait('a', { onProgress });

    await expect(waiting).rejects.toThrow('no place to show it');
    const { elements } = await server.call(1);
    expect(elements).toEqual([{ key: 'a', request_id: idOf(await server.call(0)) }]);
  });

  test('is an option of waits, and none of checks', async () => {
    const client = new SluiceClient('http://127.0.0.1:1');
    const options = { onProgress: () => undefined } as object;

    await expect(client.check('a', options)).rejects.toThrow('unknown option onProgress');
    await expect(client.permit('a', { wait: false, ...options })).rejects.toThrow(
      'Sluice is unreachable',
    );
  });
});

describe('a service that does not keep places', () => {
  test.each(['keepMillis', 'requestId'])('that does not know %s is asked once', async (name) => {
    const server = await serve((call) => {
      if (idOf(call) === null) approve(call);
      else call.fail(400, `unknown parameter ${name}; did you mean canWait?`);
    });
    const client = new SluiceClient(server.url);

    expect(await client.wait('a')).toEqual({ approved: true, requestId: 'id' });
    await client.wait('b');

    expect(server.calls.map(({ path }) => path.replace(/\?.*requestId.*/, '?kept'))).toEqual([
      '/rate/a?kept',
      '/rate/a?canWait=true',
      '/rate/b?canWait=true',
    ]);
  });

  test('for so long is asked for its longest time', async () => {
    const server = await serve((call) => {
      if (server.calls.length > 1) approve(call);
      else call.fail(403, 'keepMillis must be at most 10000 for this key');
    });
    const client = new SluiceClient(server.url);

    expect(await client.wait('a')).toMatchObject({ approved: true });
    await client.wait('b');

    const kept = server.calls.map((call) => queryOf(call).get('keepMillis'));
    expect(kept).toEqual(['30000', '10000', '10000']);
  });
});

test.each([
  [{ keepMillis: -1 }, 'keepMillis must be at least 0, not -1'],
  [{ longPollMillis: 0 }, 'longPollMillis must be above 0, not 0'],
])('a client with %j is an error', (options, message) => {
  expect(() => new SluiceClient({ url: 'http://localhost', ...options })).toThrow(message);
});
