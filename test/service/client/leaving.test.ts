import { getEventListeners } from 'node:events';

import { SluiceClient, SluiceTimeoutError } from '../../../src/client/index.js';
import { useRecordingServers } from '../../support/client/recording-server.js';
import { until } from '../../support/until.js';

const serve = useRecordingServers();

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

test('one signal serves many checks', async () => {
  const server = await serve();
  const client = new SluiceClient(server.url);
  const leaving = new AbortController();
  const { signal } = leaving;

  const checks = Array.from({ length: 100 }, () => client.check('a', { signal }));
  await server.call(0);
  leaving.abort();

  const results = await Promise.allSettled(checks);
  expect(results.filter(({ status }) => status === 'rejected')).toHaveLength(100);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
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
