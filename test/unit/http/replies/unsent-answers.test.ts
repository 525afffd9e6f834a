import { Socket } from 'node:net';

import { UNSENT_BYTES, UnsentAnswers } from '../../../../src/http/replies/unsent-answers.js';

const { connection: MOST, port: MOST_OF_PORT } = UNSENT_BYTES;
const FULL = MOST_OF_PORT / MOST;

let drops: string[];
let unsent: UnsentAnswers;
let stop: () => void;
beforeEach(() => {
  drops = [];
  unsent = new UnsentAnswers();
  stop = unsent.watch(new Set(), 3_600_000, (reason) => drops.push(reason));
});
afterEach(() => {
  stop();
});

/** Connections, each with as many unsent bytes as it may have. */
function fullConnections(count: number): Socket[] {
  return Array.from({ length: count }, () => {
    const socket = new Socket();
    unsent.add(socket, MOST);
    return socket;
  });
}

test('a connection may have as many unsent bytes as its bound', () => {
  const socket = new Socket();
  unsent.add(socket, MOST - 1);
  unsent.add(socket, 1);
  expect(socket.destroyed).toBe(false);

  unsent.add(socket, 1);
  expect(socket.destroyed).toBe(true);
  expect(drops).toEqual(['unread_answers']);
  expect(unsent.bytes).toBe(0);
});

test('bytes that are sent count no longer', () => {
  const socket = new Socket();
  for (let round = 0; round < 3; round += 1) {
    unsent.add(socket, MOST);
    unsent.sent(socket, MOST);
  }

  expect(socket.destroyed).toBe(false);
  expect(unsent.bytes).toBe(0);
});

test('beyond the bound of the port the connection goes that has sent nothing for the longest time', () => {
  const [first, second, ...others] = fullConnections(FULL);
  unsent.sent(first!, 1);
  unsent.add(first!, 1);
  const [newest] = fullConnections(1);

  expect(second!.destroyed).toBe(true);
  for (const socket of [first!, ...others, newest!]) expect(socket.destroyed).toBe(false);
  expect(drops).toEqual(['unread_answers']);
  expect(unsent.bytes).toBe(MOST_OF_PORT);
});

test('a connection that ends takes its unsent bytes along', async () => {
  const [socket] = fullConnections(1);
  socket!.destroy();
  await new Promise((resolve) => socket!.once('close', resolve));
  expect(unsent.bytes).toBe(0);

  unsent.sent(socket!, MOST);
  unsent.add(socket!, MOST);
  expect(unsent.bytes).toBe(0);
});
