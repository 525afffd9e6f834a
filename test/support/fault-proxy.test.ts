import { once } from 'node:events';
import { connect, createServer, type Server, type Socket, type AddressInfo } from 'node:net';

import { type FaultProxy, startFaultProxy } from './fault-proxy.js';
import { until } from './until.js';

/** A server that echoes and records its input. */
class Echo {
  received = '';
  readonly sockets: Socket[] = [];
  readonly server: Server = createServer((socket) => {
    this.sockets.push(socket);
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      this.received += data.toString();
      socket.write(data);
    });
  });
}

class Client {
  received = '';
  error: NodeJS.ErrnoException | undefined;
  closed = false;
  readonly socket: Socket;

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1');
    this.socket.on('data', (data) => (this.received += data.toString()));
    this.socket.on('error', (error) => (this.error = error));
    this.socket.on('close', () => (this.closed = true));
  }

  receives(text: string): Promise<unknown> {
    return until(() => this.received === text);
  }
}

describe('a proxy with faults', () => {
  let echo: Echo;
  let proxy: FaultProxy;
  let clients: Client[];
  beforeEach(async () => {
    echo = new Echo();
    echo.server.listen(0, '127.0.0.1');
    await once(echo.server, 'listening');
    proxy = await startFaultProxy((echo.server.address() as AddressInfo).port);
    clients = [];
  });
  afterEach(() => {
    for (const { socket } of clients) socket.destroy();
    proxy.stop();
    for (const socket of echo.sockets) socket.destroy();
    echo.server.close();
  });
  const open = (): Client => {
    const client = new Client(proxy.port);
    clients.push(client);
    return client;
  };
  const openAndSpeak = async (text = 'hello'): Promise<Client> => {
    const client = open();
    client.socket.write(text);
    await client.receives(text);
    return client;
  };

  test('tells one side that the other has closed', async () => {
    const client = await openAndSpeak();
    client.socket.end();
    await until(() => client.closed);
    expect(client.error).toBeUndefined();
    const another = await openAndSpeak();
    echo.sockets.at(-1)!.resetAndDestroy();
    await until(() => another.closed);
    expect(another.error?.code).toBe('ECONNRESET');
  });

  test('delays only late pieces and the pieces behind them', async () => {
    const client = open();
    const late = [false, true, false];
    proxy.toClient.delay(3_600_000, () => late.shift()!);
    client.socket.write('a');
    await client.receives('a');
    for (const text of ['b', 'c']) {
      client.socket.write(text);
      await until(() => echo.received.endsWith(text));
    }
    await until(() => late.length === 0);
    expect(client.received).toBe('a');
  });

  test('swallows one direction and keeps the connection open', async () => {
    const client = await openAndSpeak('1');
    proxy.toClient.swallow();
    client.socket.write('2');
    await until(() => proxy.toClient.bytesIn === 2);
    echo.sockets[0]!.destroy();
    // Once the server has data of another connection, the proxy has noticed the closed one.
    open().socket.write('3');
    await until(() => echo.received === '123');

    proxy.toClient.pass();
    await openAndSpeak('4');
    expect(client.received).toBe('1');
    expect(client.closed).toBe(false);
    proxy.cut();
    await until(() => client.closed);
  });

  test('cuts the connection that goes beyond a number of bytes, and no other', async () => {
    const client = await openAndSpeak('1');
    const other = await openAndSpeak('2');
    const cut = proxy.toServer.cutAfter(3);
    client.socket.write('34');
    await client.receives('134');
    other.socket.write('5');
    await other.receives('25');
    client.socket.write('67');
    await cut;
    await until(() => client.closed);
    expect(echo.received).toBe('12345');
    other.socket.write('8');
    await other.receives('258');
  });

  test('resets a client if it can not reach the server', async () => {
    echo.server.close();
    const client = open();
    await until(() => client.closed);
    expect(client.error?.code).toBe('ECONNRESET');
  });
});
