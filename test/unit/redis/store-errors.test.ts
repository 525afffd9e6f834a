import { ReplyError } from 'ioredis';

import { StoreUnavailableError } from '../../../src/limiter/errors.js';
import { classifyFailure, mayHaveRun, toLimiterError } from '../../../src/redis/store-errors.js';

// ioredis declares its class of error replies as `any`.
const ErrorReply = ReplyError as new (message: string) => Error;
const replyError = (message: string): Error => new ErrorReply(message);

const NOT_RUN: [string, Error][] = [
  ['LOADING Redis is loading the dataset in memory'],
  ["READONLY You can't write against a read only replica."],
  ["OOM command not allowed when used memory > 'maxmemory'."],
  ['BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.'],
  ["MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'."],
  ['CLUSTERDOWN The cluster is down'],
  ['TRYAGAIN Multiple keys request during rehashing of slot'],
  ['MISCONF Redis is configured to save RDB snapshots, but it is currently unable to persist'],
  ['NOREPLICAS Not enough good replicas to write.'],
].map(([message]) => [message!, replyError(message!)]);
NOT_RUN.push([
  'no connection',
  new Error("Stream isn't writeable and enableOfflineQueue options is false"),
]);

const UNKNOWN: [string, Error][] = [
  'Command timed out',
  'Connection is closed.',
  'read ECONNRESET',
].map((message) => [message, new Error(message)]);

const FAULT: [string, unknown][] = [
  ...[
    'ERR wrong number of arguments',
    'NOSCRIPT No matching script. Please use EVAL.',
    'WRONGTYPE Operation against a key holding the wrong kind of value',
    'NOPERM this user has no permissions to run the command',
    'NOAUTH Authentication required.',
    'BUSYGROUP Consumer Group name already exists',
    'ERR the instance is LOADING',
  ].map((message): [string, unknown] => [message, replyError(message)]),
  ['what is no error', 'a string'],
  ['nothing', undefined],
];

describe.each(NOT_RUN)('%s', (_name, error) => {
  test('means that the call did not run and the store is unavailable', () => {
    expect(classifyFailure(error)).toBe('not_run');
    const shown = toLimiterError(error);
    expect(shown).toBeInstanceOf(StoreUnavailableError);
    expect(shown).toMatchObject({ cause: error });
    expect(mayHaveRun(shown)).toBe(false);
  });
});

describe.each(UNKNOWN)('%s', (_name, error) => {
  test('means that the call may have run and the store is unavailable', () => {
    expect(classifyFailure(error)).toBe('unknown');
    const shown = toLimiterError(error);
    expect(shown).toBeInstanceOf(StoreUnavailableError);
    expect(shown).toMatchObject({ cause: error });
    expect(mayHaveRun(shown)).toBe(true);
  });
});

describe.each(FAULT)('%s', (_name, error) => {
  test('is a fault that is shown as it is', () => {
    expect(classifyFailure(error)).toBe('fault');
    expect(toLimiterError(error)).toBe(error);
    expect(mayHaveRun(error)).toBe(false);
  });
});
