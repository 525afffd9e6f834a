import { ReplyError } from 'ioredis';

import { StoreUnavailableError } from '../../../../src/limiter/errors.js';
import {
  classifyFailure,
  explained,
  type Failure,
  isDemoted,
  NotConnectedError,
  NotWantedError,
  toLimiterError,
} from '../../../../src/redis/availability/store-errors.js';

// ioredis declares its class of error replies as `any`.
const ErrorReply = ReplyError as new (message: string) => Error;
const replies = (failure: Failure, messages: string[]): [string, Failure, Error][] =>
  messages.map((message) => [message, failure, new ErrorReply(message)]);
const others = (failure: Failure, messages: string[]): [string, Failure, Error][] =>
  messages.map((message) => [message, failure, new Error(message)]);

const FAILURES = [
  ...replies('passing', [
    'LOADING Redis is loading the dataset in memory',
    "READONLY You can't write against a read only replica.",
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
    'CLUSTERDOWN The cluster is down',
  ]),
  ...replies('refused', [
    'BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.',
    'MISCONF Redis is configured to save RDB snapshots, but it is currently unable to persist',
    'NOREPLICAS Not enough good replicas to write.',
    'NOPERM this user has no permissions to run the command',
    'NOAUTH Authentication required.',
  ]),
  ...replies('full', [
    "OOM command not allowed when used memory > 'maxmemory'.",
    // The message of Redis 6 if it happens in a script.
    'ERR Error running script (call to f_5b1): @user_script:7: @user_script: 7: -OOM command not allowed',
  ]),
  ...replies('moving', [
    'TRYAGAIN Multiple keys request during rehashing of slot',
    'MOVED 3999 127.0.0.1:6381',
    'ASK 3999 127.0.0.1:6381',
    'ERR Script attempted to access a non local key in a cluster node script: f_5b1, on @user_script:7.',
  ]),
  ...others('moving', [
    'Too many Cluster redirections. Last error: ReplyError: TRYAGAIN Multiple keys request',
  ]),
  ...others('passing', [
    "Stream isn't writeable and enableOfflineQueue options is false",
    "Cluster isn't ready and enableOfflineQueue options is false",
  ]),
  ['no connection', 'passing', new NotConnectedError()] as const,
  ['a call that nobody waits for', 'passing', new NotWantedError()] as const,
  ...others('unknown', [
    'Command timed out',
    'Connection is closed.',
    'read ECONNRESET',
    'Reached the max retries per request limit (which is 0).',
    'Too many Cluster redirections. Last error: Error: Connection is closed.',
  ]),
];

const FAULTS: [string, unknown][] = [
  ...[
    'ERR wrong number of arguments',
    'NOSCRIPT No matching script. Please use EVAL.',
    'WRONGTYPE Operation against a key holding the wrong kind of value',
    'BUSYGROUP Consumer Group name already exists',
    'ERR the instance is LOADING',
  ].map((message): [string, unknown] => [message, new ErrorReply(message)]),
  ['a value that is not an error', 'a string'],
  ['nothing', undefined],
];

describe.each(FAILURES)('%s', (_name, failure, error) => {
  test(`is ${failure}, and the store unavailable`, () => {
    expect(classifyFailure(error)).toBe(failure);
    const shown = toLimiterError(error);
    expect(shown).toBeInstanceOf(StoreUnavailableError);
    expect(shown).toMatchObject({ cause: error, mayHaveRun: failure === 'unknown' });
  });
});

describe.each(FAULTS)('%s', (_name, error) => {
  test('is a fault that is passed on unchanged', () => {
    expect(classifyFailure(error)).toBe('fault');
    expect(toLimiterError(error)).toBe(error);
  });
});

test.each([
  ["READONLY You can't write against a read only replica.", true],
  ["ERR Error running script (call to f_5b1): @user_script:7: -READONLY You can't write", true],
  ['LOADING Redis is loading the dataset in memory', false],
])('%s means a demoted primary: %s', (message, expected) => {
  expect(isDemoted(new ErrorReply(message))).toBe(expected);
});

describe('an error of ioredis about a connection', () => {
  const refused = new Error('connect ECONNREFUSED 10.0.0.7:6379');

  test.each([
    ["Stream isn't writeable and enableOfflineQueue options is false", 'not connected to Redis'],
    ["Cluster isn't ready and enableOfflineQueue options is false", 'not connected to Redis'],
    ['Connection is closed.', 'the connection to Redis was lost before the reply'],
    [
      'Reached the max retries per request limit (which is 0). Refer to "maxRetriesPerRequest" option for details.',
      'the connection to Redis was lost before the reply',
    ],
  ])('says what is wrong with the connection (%s)', (message, said) => {
    const error = new Error(message);
    expect(explained(error, undefined)).toMatchObject({ message: said });
    expect(explained(error, refused)).toMatchObject({ message: `${said}: ${refused.message}` });
    // Node's error for a name with several addresses.
    const ofAll = Object.assign(new AggregateError([refused]), { code: 'ECONNREFUSED' });
    expect(explained(error, ofAll)).toMatchObject({ message: `${said}: ECONNREFUSED` });
  });

  test('is the only error with a new message', () => {
    const reply = new ErrorReply('LOADING Redis is loading the dataset in memory');
    expect(explained(reply, refused)).toBe(reply);
    expect(explained('a string', refused)).toBe('a string');
  });
});
