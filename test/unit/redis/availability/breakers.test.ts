import { setImmediate as nextTick } from 'node:timers/promises';

import { ReplyError } from 'ioredis';

import { Breaker, Breakers } from '../../../../src/redis/availability/breakers.js';
import { TimeoutError } from '../../../../src/common/deadline.js';
import { FakeStore } from '../../../support/fake-store.js';
import { ManualClock } from '../../../support/manual-clock.js';
import { recordLog, type RecordedLog } from '../../../support/recorded-log.js';
import { FAILURES } from '../../../support/store-failures.js';
import { until } from '../../../support/until.js';
import { unobserved } from '../../../support/unguarded.js';
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

describe('breakers', () => {
  let store: FakeStore;
  let clock: ManualClock;
  let log: RecordedLog;
  let timeoutMillis: number;
  /** The calls of listeners and observer, in order. */
  let told: unknown[];
  let breakers: Breakers;
  beforeEach(() => {
    store = new FakeStore();
    clock = new ManualClock(0);
    log = recordLog();
    timeoutMillis = 60_000;
    told = [];
    breakers = create();
  });

  function create(): Breakers {
    return new Breakers({
      connections: store.connections,
      timeoutMillis,
      clock,
      logger: log.logger,
      observer: { ...unobserved, breakersOpen: (count) => told.push(count) },
    });
  }

  function open(name: string, cause: unknown = FAILURES.refused): void {
    for (let i = 0; i < 3; i += 1) breakers.of(name).failed(name, cause);
  }

  async function advance(millis: number): Promise<void> {
    await clock.advance(millis, { afterTimers: () => nextTick() });
  }

  test('each change is reported with the number of shards that are down, and logged once', async () => {
    breakers.onChange((isOpen) => told.push(isOpen));
    open('a:1');
    open('a:1');
    open('b:1');
    expect(told).toEqual([1, true, 2, true]);
    await advance(50);
    expect(told).toEqual([1, true, 2, true, 1, false, 0, false]);
    expect(log.lines).toMatchObject([
      {
        level: 'warn',
        msg: 'store is down; not asked until it is up again',
        shard: 'a',
        reason: FAILURES.refused.message,
      },
      { level: 'warn', msg: 'store is down; not asked until it is up again', shard: 'b' },
      { level: 'info', msg: 'store is up again', shard: 'a' },
      { level: 'info', msg: 'store is up again', shard: 'b' },
    ]);
  });

  test('a probe writes to a name beside one that the shard holds', async () => {
    open('a:{key}');
    await advance(50);
    expect(store.probes).toEqual([['setrange', 'a:{key}:probe', 0, '']]);
  });

  test('a shard without room for new keys is back', async () => {
    store.answerProbe = () => Promise.reject(FAILURES.full);
    expect(await breakers.probe('a:1')).toBe('full');
    open('a:1');
    await advance(50);
    expect(breakers.of('a:1').isOpen).toBe(false);
  });

  test('a shard that does not answer in time is not back', async () => {
    timeoutMillis = 1;
    breakers = create();
    store.answerProbe = () => new Promise(() => undefined);
    await expect(breakers.probe('a:1')).rejects.toThrow(TimeoutError);
  });

  test('only shards that are down are probed when Redis can be reached again', async () => {
    breakers.of('b:1').failed('b:1', FAILURES.unknown);
    open('a:1');
    store.becomeReady();
    await nextTick();
    expect(store.probes).toEqual([['setrange', 'a:1:probe', 0, '']]);
    expect(breakers.of('a:1').isOpen).toBe(false);
  });

  test('the connection is examined again after each probe without a reply, with one probe at a time', async () => {
    timeoutMillis = 1;
    breakers = create();
    let answer!: (reply: number) => void;
    store.answerProbe = () => new Promise((resolve) => (answer = resolve));
    open('a:1', new TimeoutError(500));
    for (const looks of [2, 3, 4]) {
      await advance(250);
      await until(() => store.suspected.length === looks);
    }
    expect(store.probes).toHaveLength(1);
    store.answerProbe = () => Promise.resolve(0);
    answer(0);
    await advance(250);
    await until(() => !breakers.of('a:1').isOpen);
  });

  test.each(['a:1', 'b:1'])('calls of %s that fail after dispose open no breaker', (name) => {
    open('a:1');
    breakers.dispose();
    open(name);
    expect(breakers.of(name).isOpen).toBe(false);
  });

  test('a connection is not examined again while it is examined', async () => {
    const suspected: string[] = [];
    store.connections.renewIfDead = (shard) => {
      suspected.push(shard);
      return new Promise(() => undefined);
    };
    store.answerProbe = () => new Promise(() => undefined);
    timeoutMillis = 1;
    breakers = create();
    await expect(breakers.probe('a:1')).rejects.toThrow(TimeoutError);
    await expect(breakers.probe('a:1')).rejects.toThrow(TimeoutError);
    await expect(breakers.probe('b:1')).rejects.toThrow(TimeoutError);
    expect(suspected).toEqual(['a', 'b']);
  });
});

describe('one breaker', () => {
  const cause = (number: number): Error => new Error(`failure ${number}`);

  /** The probes so far: the name that each asked about, and the test's means to answer it. */
  interface Probe {
    readonly name: string;
    readonly answer: () => void;
    readonly fail: () => void;
  }

  let clock: ManualClock;
  let probes: Probe[];
  /** Makes every probe fail without the test's help. */
  let failProbes: boolean;
  let events: unknown[];
  let breaker: Breaker;
  beforeEach(() => {
    clock = new ManualClock(0);
    probes = [];
    failProbes = false;
    events = [];
    breaker = new Breaker({
      clock,
      probe: (name) =>
        new Promise((resolve, reject) => {
          const fail = (): void => {
            reject(new Error('still down'));
          };
          probes.push({ name, answer: () => resolve(0), fail });
          if (failProbes) fail();
        }),
      onOpen: (error) => events.push(['open', error, breaker.isOpen]),
      onClose: () => events.push(['close', breaker.isOpen]),
    });
  });

  const OPENED = ['open', cause(3), true];
  const CLOSED = ['close', false];

  function fail(...numbers: number[]): void {
    for (const number of numbers) breaker.failed(`name ${number}`, cause(number));
  }

  async function advance(millis: number): Promise<void> {
    await clock.advance(millis, { afterTimers: () => nextTick() });
  }

  async function answerProbe(index: number): Promise<void> {
    probes[index]!.answer();
    await nextTick();
  }

  async function failProbe(index: number): Promise<void> {
    probes[index]!.fail();
    await nextTick();
  }

  describe('a closed breaker', () => {
    test('opens without a failure if the shard is known to be down, once, and probes', async () => {
      breaker.open('name 3', cause(3));
      breaker.open('name 4', cause(4));
      expect([breaker.isOpen, events]).toEqual([true, [OPENED]]);
      await advance(50);
      expect(probes.map(({ name }) => name)).toEqual(['name 3']);
      await answerProbe(0);
      expect(events).toEqual([OPENED, CLOSED]);
    });

    test('stays closed if a success comes between failures', () => {
      fail(1, 2);
      breaker.succeeded();
      fail(1, 2);
      expect([breaker.isOpen, events]).toEqual([false, []]);
      fail(3);
      expect(breaker.isOpen).toBe(true);
    });
  });

  describe('an open breaker', () => {
    beforeEach(() => {
      fail(1, 2, 3);
    });

    test('probes less and less often, and never while a probe is under way', async () => {
      for (const [asked, delay] of [50, 100, 200, 250, 250, 250].entries()) {
        await advance(delay - 1);
        expect(probes).toHaveLength(asked);
        await advance(1);
        expect(probes).toHaveLength(asked + 1);
        await advance(1000);
        breaker.probeNow();
        expect(probes).toHaveLength(asked + 1);
        await failProbe(asked);
      }
      expect([breaker.isOpen, events]).toEqual([true, [OPENED]]);
    });

    test('closes when a probe is answered, and sends no more', async () => {
      await advance(50);
      expect(breaker.isOpen).toBe(true);
      await answerProbe(0);
      expect([breaker.isOpen, events]).toEqual([false, [OPENED, CLOSED]]);
      await advance(100_000);
      expect(probes).toHaveLength(1);
    });

    test('needs three failures to open again, and then probes from the start', async () => {
      failProbes = true;
      await advance(1000);
      failProbes = false;
      breaker.probeNow();
      await answerProbe(probes.length - 1);
      const before = probes.length;

      fail(1, 2);
      expect(breaker.isOpen).toBe(false);
      fail(3);
      expect(events).toEqual([OPENED, CLOSED, OPENED]);
      await advance(49);
      expect(probes).toHaveLength(before);
      await advance(1);
      expect(probes).toHaveLength(before + 1);
    });

    test('probes at once when it is told that the shard may be back', async () => {
      breaker.probeNow();
      expect(probes).toHaveLength(1);
      await answerProbe(0);
      expect([breaker.isOpen, events]).toEqual([false, [OPENED, CLOSED]]);
      await advance(100_000);
      expect(probes).toHaveLength(1);
    });

    test('that is ended sends no more probes', async () => {
      breaker.dispose();
      expect(breaker.isOpen).toBe(false);
      breaker.probeNow();
      await advance(100_000);
      expect(probes).toEqual([]);
    });

    test.each([
      ['answered', answerProbe],
      ['failed', failProbe],
    ])('that is ended ignores a probe that is %s', async (_what, end) => {
      await advance(50);
      breaker.dispose();
      await end(0);
      await advance(100_000);
      expect(probes).toHaveLength(1);
      expect(events).toEqual([OPENED]);
    });
  });
});

describe('errors of the store', () => {
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
    ...replies('other_form', [
      'ERR Redis holds form 2 of the state, this version reads form 1 script: f_5b1, on @user_script:7.',
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
});
