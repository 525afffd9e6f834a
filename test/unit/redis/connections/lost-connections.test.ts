import { EventEmitter, once } from 'node:events';
import type { LookupAddress } from 'node:dns';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { setImmediate as nextTick } from 'node:timers/promises';

import { jest } from '@jest/globals';
import { pino } from 'pino';
import { Redis } from 'ioredis';

import {
  lastErrorOf,
  logConnection,
  refusedFor,
} from '../../../../src/redis/connections/connection-log.js';
import { LookupError, HostLookups } from '../../../../src/redis/connections/host-lookups.js';
import { recordLog, type RecordedLog } from '../../../support/recorded-log.js';
import { connect } from '../../../../src/redis/connections/connect.js';
import { until } from '../../../support/until.js';
import { quit } from '../../../../src/redis/connections/connections.js';
import '../../../../src/redis/connections/ioredis-changes.js';
import { startFakeRedis } from '../../../support/fake-redis.js';

describe('the log of a connection', () => {
  const failure = (code: string): Error => Object.assign(new Error(`connect ${code}`), { code });
  const noDns = new LookupError('redis', failure('EAI_AGAIN'), []);

  /** The events of a client. */
  class Client extends EventEmitter {
    status = 'ready';
  }

  let client: Client;
  let log: RecordedLog;
  beforeEach(() => {
    client = new Client();
    log = recordLog();
    logConnection(client, 'commands', log.logger);
  });

  const messages = (): unknown[] => log.lines.map(({ msg }) => msg);

  test('the loss of a connection, each reason in between, and its return are logged once', () => {
    client.emit('close');
    for (const code of ['ECONNREFUSED', 'ECONNREFUSED', 'ETIMEDOUT', 'ECONNREFUSED']) {
      client.emit('error', failure(code));
      client.emit('close');
    }
    client.emit('ready');
    expect(messages()).toEqual([
      'redis connection lost',
      'redis connection failed',
      'redis connection failed',
      'redis connection restored',
    ]);

    client.emit('error', failure('ECONNREFUSED'));
    expect(messages().at(-1)).toBe('redis connection failed');
  });

  test('only DNS errors of a node of a cluster are logged', () => {
    client.emit('node error', failure('ECONNREFUSED'));
    client.emit('node error', noDns);
    client.emit('node error', noDns);
    expect(messages()).toEqual(['redis connection failed']);
  });

  test('the last error is known until the connection is back', () => {
    const lastError = lastErrorOf(client);
    expect(lastError()).toBeUndefined();
    client.emit('error', failure('ECONNREFUSED'));
    client.emit('error', noDns);
    expect(lastError()).toBe(noDns);

    client.emit('ready');
    expect(lastError()).toBeUndefined();
  });

  test('the last error of a cluster is the error of its last node', () => {
    const lastError = lastErrorOf(client);
    const refused = failure('ECONNREFUSED');
    client.emit('error', Object.assign(new Error('no node'), { lastNodeError: refused }));
    expect(lastError()).toBe(refused);
    client.emit('node error', noDns);
    expect(lastError()).toBe(noDns);
  });

  describe('connections are refused', () => {
    let refusedMillis: () => number;
    let now: jest.SpiedFunction<typeof performance.now>;
    beforeEach(() => {
      refusedMillis = refusedFor(client);
      now = jest.spyOn(performance, 'now').mockReturnValue(1000);
      client.emit('error', failure('ECONNREFUSED'));
      now.mockReturnValue(1300);
      client.emit('error', failure('ECONNREFUSED'));
      now.mockReturnValue(1500);
    });
    afterEach(() => {
      now.mockRestore();
    });

    test('from the first refused attempt on', () => {
      expect(refusedMillis()).toBe(500);
    });

    test('until the client is ready', () => {
      client.emit('ready');
      expect(refusedMillis()).toBe(0);
      client.emit('error', failure('ECONNREFUSED'));
      now.mockReturnValue(1600);
      expect(refusedMillis()).toBe(100);
    });

    test.each(['ETIMEDOUT', 'ECONNRESET'])('until an attempt fails with %s', (code) => {
      client.emit('error', failure(code));
      expect(refusedMillis()).toBe(0);
    });
  });
});

const FIRST: LookupAddress = { address: '10.0.0.7', family: 4 };
const SECOND: LookupAddress = { address: '10.0.0.8', family: 4 };
const PATIENCE_MILLIS = 20;

type Answer = readonly LookupAddress[] | Error | Promise<readonly LookupAddress[]>;

const failure = (code: string): Error => Object.assign(new Error(`getaddrinfo ${code}`), { code });

/** Look-ups of one name, with the answers of the test in order. */
function lookupsThat(...answers: Answer[]) {
  const failures: string[] = [];
  let asked = 0;
  const lookups = new HostLookups(() => {
    const answer = answers[asked]!;
    asked += 1;
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
  });
  const lookUp = lookups.for(PATIENCE_MILLIS, ({ message }) => failures.push(message));
  const ask = (all = true): Promise<unknown> =>
    new Promise((resolve, reject) => {
      lookUp('redis', { all }, (error, address, family) => {
        if (error) reject(error);
        else resolve(all ? address : [address, family]);
      });
    });
  return { ask, failures, asked: () => asked };
}

test('a name has the current addresses of DNS', async () => {
  const { ask, failures } = lookupsThat([FIRST], [SECOND, FIRST], [SECOND]);
  expect(await ask()).toEqual([FIRST]);
  expect(await ask()).toEqual([SECOND, FIRST]);
  expect(await ask(false)).toEqual([SECOND.address, 4]);
  expect(failures).toEqual([]);
});

test.each([['EAI_AGAIN'], ['ENOTFOUND']])(
  'a name keeps its last addresses while a look-up fails with %s',
  async (code) => {
    const { ask, failures } = lookupsThat([FIRST], [SECOND, FIRST], failure(code), failure(code));
    await ask();
    await ask();
    expect(await ask()).toEqual([SECOND, FIRST]);
    expect(await ask(false)).toEqual([SECOND.address, 4]);
    const message = `DNS look-up of redis failed: ${code}; trying the last addresses 10.0.0.8, 10.0.0.7`;
    expect(failures).toEqual([message, message]);
  },
);

test('a name that was never found has no addresses, and the error gives the reason', async () => {
  const { ask, failures } = lookupsThat(failure('EAI_AGAIN'));
  await expect(ask()).rejects.toMatchObject({
    message: 'DNS look-up of redis failed: EAI_AGAIN',
    code: 'EAI_AGAIN',
  });
  expect(failures).toEqual([]);
});

test('a look-up that hangs delays callers for a while, is shared, and counts when it is answered', async () => {
  let answer: (addresses: readonly LookupAddress[]) => void = () => undefined;
  const hanging = new Promise<readonly LookupAddress[]>((resolve) => {
    answer = resolve;
  });
  const { ask, failures, asked } = lookupsThat([FIRST], hanging, failure('EAI_AGAIN'));
  await ask();
  expect(await Promise.all([ask(), ask()])).toEqual([[FIRST], [FIRST]]);
  expect(await ask()).toEqual([FIRST]);
  expect(asked()).toBe(2);
  expect(failures[0]).toBe(
    `DNS look-up of redis failed: no answer within ${PATIENCE_MILLIS} ms; trying the last address 10.0.0.7`,
  );

  answer([SECOND]);
  await hanging;
  expect(await ask()).toEqual([SECOND]);
});

describe('a handshake', () => {
  /** A commands and a subscriber connection. */
  const CLIENTS = 2;

  let server: Server;
  let accepted: number;
  beforeEach(async () => {
    accepted = 0;
    // It accepts connections and answers nothing.
    server = createServer((socket) => {
      accepted += 1;
      socket.on('error', () => undefined).resume();
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterEach(() => server.close());

  test('a connection to a server that does not answer its handshake is ended, and made again', async () => {
    const connections = connect(
      {
        mode: 'standalone',
        urls: [`redis://127.0.0.1:${(server.address() as AddressInfo).port}`],
        timeoutMillis: 20,
        database: 0,
        name: 'test',
      },
      pino({ enabled: false }),
    );
    await until(() => accepted > 2 * CLIENTS);
    await connections.close();
  });
});

/** A client whose QUIT ends in this way. @returns its calls, in their order */
async function quitting(answer: () => Promise<unknown>): Promise<string[]> {
  const calls: string[] = [];
  const client = {
    quit: () => {
      calls.push('quit');
      return answer();
    },
    disconnect: () => calls.push('disconnect'),
  };
  await quit(client, 1);
  return calls;
}

test.each([
  ['fails', () => Promise.reject(new Error('Connection is closed.'))],
  ['is not answered in time', () => new Promise(() => undefined)],
])('a connection whose QUIT %s is cut', async (_how, answer) => {
  expect(await quitting(answer)).toEqual(['quit', 'disconnect']);
});

describe('what is changed in ioredis', () => {
  let server: Server;
  beforeAll(async () => {
    server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
  });
  afterAll(() => void server.close());

  test('a socket of a client may fail more than once', async () => {
    const { port } = server.address() as AddressInfo;
    const client = new Redis({ host: '127.0.0.1', port, retryStrategy: null });
    const failed = once(client, 'error');
    const [accepted] = (await once(server, 'connection')) as [Socket];
    const { stream } = client as unknown as { stream: Socket };
    stream.emit('error', new Error('first'));
    // Without a listener the error would be thrown here.
    stream.emit('error', new Error('second'));
    expect(await failed).toMatchObject([{ message: 'first' }]);
    client.disconnect();
    accepted.destroy();
  });

  test('a host name leads to a server', async () => {
    const fake = await startFakeRedis(() => undefined);
    const client = new Redis(fake.url.replace('127.0.0.1', 'localhost'), {
      enableReadyCheck: false,
    });
    expect(await client.ping()).toBe('OK');
    client.disconnect();
    await fake.close();
  });

  test('a connection may end before the reply to an ASKING that nobody awaits', async () => {
    const fake = await startFakeRedis((command) => (command === 'ASKING' ? '' : undefined));
    const client = new Redis(fake.url, { retryStrategy: null, enableReadyCheck: false });
    client.on('error', () => undefined);
    await client.ping();
    const ended = once(client, 'end');
    void client.asking();
    await fake.close();
    await ended;
    // An unhandled rejection fails the test.
    await nextTick();
  });
});
