import { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';

import {
  type JudgedConnection,
  MAX_REJECTIONS,
  REQUESTS_PER_TICK,
  UntrustedConnections,
} from '../../../src/net/untrusted-connections.js';

/** A socket that knows whether it is read. */
class FakeSocket extends EventEmitter {
  isRead = true;
  isPausedStream = false;
  readonly _handle = {
    readStart: (): void => void (this.isRead = true),
    readStop: (): void => void (this.isRead = false),
  };

  constructor(readonly remoteAddress: string) {
    super();
  }

  isPaused(): boolean {
    return this.isPausedStream;
  }
}

let nextTick: (() => void)[];
let connections: UntrustedConnections;
beforeEach(() => {
  nextTick = [];
  connections = new UntrustedConnections({ next: (callback) => nextTick.push(callback) });
});

function tick(): void {
  for (const callback of nextTick.splice(0)) callback();
}

function connect(address: string): [JudgedConnection, FakeSocket] {
  const socket = new FakeSocket(address);
  return [connections.begin(socket as unknown as Socket), socket];
}

function take(connection: JudgedConnection, requests = REQUESTS_PER_TICK): void {
  for (let i = 0; i < requests; i += 1) connections.take(connection);
}

/** Lets ticks pass, in each of which the connections that are read send what fills the tick. */
function orderOfTurns(sending: readonly [JudgedConnection, FakeSocket][]): number[] {
  const order: number[] = [];
  while (order.length < sending.length) {
    tick();
    sending.forEach(([connection, socket], i) => {
      if (!socket.isRead) return;
      order.push(i);
      take(connection);
    });
  }
  return order;
}

test('connections are read until a tick has its requests, and then one in each tick', () => {
  const all = [connect('a'), connect('a'), connect('a')];
  take(all[0]![0], REQUESTS_PER_TICK - 1);
  expect(all.map(([, { isRead }]) => isRead)).toEqual([true, true, true]);
  take(all[0]![0], 1);
  expect(all.map(([, { isRead }]) => isRead)).toEqual([false, false, false]);

  expect(orderOfTurns(all)).toEqual([2, 0, 1]);
});

test('the requests of a trusted connection do not count, and it is read meanwhile', () => {
  const [[trusted, socket], [other, otherSocket]] = [connect('a'), connect('b')];
  connections.accept(trusted);
  take(trusted, 2 * REQUESTS_PER_TICK);
  expect(otherSocket.isRead).toBe(true);
  take(other);

  expect([socket.isRead, otherSocket.isRead]).toEqual([true, false]);
});

test('a connection is read again once one of its requests is accepted, unless its stream is paused', () => {
  const [[first, firstSocket], [second, secondSocket]] = [connect('a'), connect('a')];
  take(first);
  secondSocket.isPausedStream = true;
  connections.accept(first);
  connections.accept(second);

  expect([firstSocket.isRead, secondSocket.isRead]).toEqual([true, false]);
});

test('a connection whose last request was rejected is untrusted until one is accepted', () => {
  const [connection, socket] = connect('a');
  connections.accept(connection);
  connections.reject(connection);
  take(connection);
  expect(socket.isRead).toBe(false);
  connections.accept(connection);
  take(connection);

  expect(socket.isRead).toBe(true);
});

test('another address, and a new connection, come before the many connections of one address', async () => {
  const many = Array.from({ length: 50 }, () => connect('a'));
  for (const [connection] of many) take(connection, 2);
  take(many[0]![0]);
  const other = connect('b');
  const fresh = connect('a');
  await new Promise(setImmediate);
  expect([other, fresh].map(([, { isRead }]) => isRead)).toEqual([false, false]);

  const order = orderOfTurns([...many, other, fresh]);
  expect(order.slice(0, 3)).toEqual([0, 50, 51]);
});

test('a connection that is next is read before it is stopped again', () => {
  const [[first], [second, secondSocket], [third, thirdSocket]] = [
    connect('a'),
    connect('b'),
    connect('c'),
  ];
  take(second, 1);
  take(third, 1);
  take(first);
  tick();
  expect([secondSocket.isRead, thirdSocket.isRead]).toEqual([true, false]);
  const [late] = connect('d');
  take(late);

  expect(secondSocket.isRead).toBe(true);
  take(second);
  expect(secondSocket.isRead).toBe(false);
});

test('idle connections that were stopped are all read again', () => {
  const all = Array.from({ length: 1000 }, () => connect('a'));
  take(all[0]![0]);
  let ticks = 0;
  for (; nextTick.length > 0; ticks += 1) tick();

  expect(all.every(([, { isRead }]) => isRead)).toBe(true);
  expect(ticks).toBeLessThan(30);
});

test('a connection that Node resumes meanwhile is stopped by its next request', () => {
  const [[first], [second, socket]] = [connect('a'), connect('a')];
  take(first);
  socket.isRead = true;
  connections.take(second);

  expect(socket.isRead).toBe(false);
});

test('a closed connection has no turn', () => {
  const [[first], [, gone], [, last]] = [connect('a'), connect('a'), connect('a')];
  take(first);
  last.emit('close');
  tick();

  expect([gone.isRead, last.isRead]).toEqual([true, false]);
});

test('only a connection without any accepted request is unwanted after ten rejected ones', () => {
  const [[never], [once]] = [connect('a'), connect('a')];
  connections.accept(once);
  for (let i = 1; i < MAX_REJECTIONS; i += 1) connections.reject(never);
  for (let i = 0; i < 2 * MAX_REJECTIONS; i += 1) connections.reject(once);
  expect([never.isUnwanted, once.isUnwanted]).toEqual([false, false]);
  connections.reject(never);

  expect(never.isUnwanted).toBe(true);
});
