import { EventEmitter } from 'node:events';

import { jest } from '@jest/globals';

import {
  lastErrorOf,
  logConnection,
  refusedFor,
} from '../../../../src/redis/connections/connection-log.js';
import { LookupError } from '../../../../src/redis/connections/host-lookups.js';
import { recordLog, type RecordedLog } from '../../../support/recorded-log.js';

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

test('a connection that is lost again is logged again', () => {
  for (let i = 0; i < 2; i += 1) {
    client.emit('close');
    client.emit('ready');
    client.emit('ready');
  }
  const once = ['redis connection lost', 'redis connection restored'];
  expect(messages()).toEqual([...once, ...once]);
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
