import { SluiceClient } from '../../../src/client/index.js';
import {
  type RecordedCall,
  type RecordingServer,
  useRecordingServers,
} from '../../support/client/recording-server.js';
import { freePort } from '../../support/free-port.js';

const serve = useRecordingServers();

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
const ways: readonly (readonly [string, Ask])[] = [
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
const clientOf = (...servers: readonly { url: string }[]) =>
  new SluiceClient({ url: servers.map(({ url }) => url), retries: 0, keepMillis: 0 });

test.each(ways)('a %s goes to the second address if the first refuses it', async (_, ask) => {
  const refusing = { url: `http://127.0.0.1:${await freePort()}` };
  const second = await serve(approve);

  expect(await ask(clientOf(refusing, second), 'a')).toMatchObject({ approved: true });
});

test.each(ways)('a %s goes to the second address if the first stops', async (_, ask) => {
  const stopping = await serve(stop);
  const second = await serve(approve);

  expect(await ask(clientOf(stopping, second), 'a')).toMatchObject({ approved: true });
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
  const client = clientOf(stopping, second);

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
  const client = clientOf(first, second);

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
  const client = clientOf(stopping, second);

  await client.wait('a');
  await client.wait('b');

  expect(pathsOf(stopping)).toEqual([pathOfWait('a')]);
  expect(pathsOf(second)).toEqual([pathOfWait('b')]);
});

test('a request fails once all addresses have failed it', async () => {
  const refusing = { url: `http://127.0.0.1:${await freePort()}` };
  const stopping = await serve(stop);

  await expect(clientOf(refusing, stopping).wait('a')).rejects.toMatchObject({
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

    const client = clientOf(first, second);
    expect(await client.wait('a', HELD)).toMatchObject({ approved: true });

    expect([first.calls.length, second.calls.length]).toEqual([1, 1]);
  });

  test('of a held wait may have counted, whatever comes after it', async () => {
    const [first, second] = [await losing(), await serve(stop)];

    const held = clientOf(first, second).wait('a', HELD);

    await expect(held).rejects.toMatchObject({ message: 'shutting down', mayHaveCounted: true });
  });

  test.each([
    ...ways,
    ['held check', ((client, key) => client.check(key, HELD)) satisfies Ask] as const,
  ])('of a %s does not, since both may be approved', async (_, ask) => {
    const [first, second] = [await losing(), await serve(approve)];

    await expect(ask(clientOf(first, second), 'a')).rejects.toMatchObject({
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

    await change(clientOf(first, second), 'a');

    expect([first.calls.length, second.calls.length]).toEqual([1, 1]);
  });
});

test('a client without an address is an error', () => {
  expect(() => new SluiceClient({ url: [] })).toThrow('url must have an address');
  expect(() => new SluiceClient({ url: 'http://localhost', retries: -1 })).toThrow(
    'retries must be at least 0, not -1',
  );
});
