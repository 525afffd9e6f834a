import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { setImmediate as nextTick } from 'node:timers/promises';

import { TimeoutError, withinDeadline } from '../../../src/common/deadline.js';
import { holdEventLoop } from '../../support/hold-event-loop.js';

const LONG_MILLIS = 3_600_000;

const timers = (): number =>
  process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;

test('a result in time is passed on', async () => {
  await expect(withinDeadline(Promise.resolve('done'), LONG_MILLIS)).resolves.toBe('done');
});

test('a failure in time is passed on', async () => {
  const error = new Error('failed');
  await expect(withinDeadline(Promise.reject(error), LONG_MILLIS)).rejects.toBe(error);
});

test.each([
  ['is done', () => Promise.resolve()],
  ['fails', () => Promise.reject(new Error('failed'))],
])('no timer is left when the work %s', async (_what, work) => {
  const before = timers();
  const done = withinDeadline(work(), LONG_MILLIS);
  expect(timers()).toBe(before + 1);
  await done.catch(() => undefined);
  expect(timers()).toBe(before);
});

test('work that is not done in time fails', async () => {
  const never = new Promise(() => undefined);
  await expect(withinDeadline(never, 1)).rejects.toThrow(TimeoutError);
  await expect(withinDeadline(never, 1)).rejects.toThrow('no answer within 1 ms');
});

/** Resolves after `count` ticks, like a call that needs them to be sent and to be answered. */
async function ticks(count: number): Promise<void> {
  for (let tick = 0; tick < count; tick += 1) await nextTick();
}

async function standStill(millis: number): Promise<void> {
  await nextTick();
  holdEventLoop(millis);
}

test('a process that stands still before it has sent a call leaves the call time for its answer', async () => {
  const sent = standStill(1200);

  await expect(
    withinDeadline(
      sent.then(() => ticks(3)),
      1000,
    ),
  ).resolves.toBeUndefined();
});

describe('a process that stood still', () => {
  let near: Socket;
  let far: Socket;
  beforeAll(async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    near = connect((server.address() as AddressInfo).port, '127.0.0.1');
    [far] = (await once(server, 'connection')) as [Socket];
    server.close();
  });
  afterAll(() => {
    near.destroy();
    far.destroy();
  });

  test('reads the data that has arrived before time is up', async () => {
    const arrived = once(near, 'data');
    const answer = withinDeadline(arrived, 5);
    far.write('answer');
    holdEventLoop(20);

    expect(String(await answer)).toBe('answer');
  });
});
