import type { Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { setImmediate as nextTick } from 'node:timers/promises';

import { pauseReading } from '../../../../src/http/intake/connection-state.js';
import { untilDisconnect } from '../../../../src/http/intake/disconnect.js';
import { holdEventLoop } from '../../../support/hold-event-loop.js';

/** Longer than a connection may be held up while a request waits. */
const STANDSTILL_MILLIS = 150;

function heldUpSocket(): Socket {
  const socket = new PassThrough() as unknown as Socket;
  pauseReading(socket);
  return socket;
}

test('a connection is cut if it is not read while a request waits', async () => {
  const socket = heldUpSocket();
  const cut = new Promise((resolve) => socket.once('close', resolve));
  await untilDisconnect(socket, () => cut);
  expect(socket.destroyed).toBe(true);
});

test('a process that stood still handles arrived decisions before it cuts a connection', async () => {
  const socket = heldUpSocket();
  await nextTick();
  const decided = untilDisconnect(socket, () => nextTick());
  holdEventLoop(STANDSTILL_MILLIS);
  await decided;
  await nextTick();
  expect(socket.destroyed).toBe(false);
});
