import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import { leastMemoryMillis } from '../chaos/limits.js';
import { KeyAccount, parseSnapshot } from './key-account.js';
import { rulesIn } from '../rules-in.js';

const names = new KeyNaming('sluice:').namesOf('key');

/** An account of an empty key with a maximum of two, and its events. */
function openAccount() {
  const violations: string[] = [];
  const approved: string[] = [];
  const limits: number[] = [];
  const windows: (readonly [string, number])[][] = [];
  const unsure: string[] = [];
  const countsSince = new Map<string, number | undefined>();
  const account = new KeyAccount(
    names,
    { highestMaximum: 9, rememberedMillis: leastMemoryMillis },
    {
      onApproved: ({ id, limits, mayBeRenewal, inForce }) => {
        approved.push(id);
        countsSince.set(id, inForce.get(undefined)?.countsSince);
        if (mayBeRenewal) unsure.push(id);
        windows.push([...limits]);
      },
      onJoined: () => undefined,
      onTurns: () => undefined,
      onWindow: () => undefined,
      onLimits: ({ limits: [{ maximum }] }) => limits.push(maximum),
      onViolation: (violation) => violations.push(violation),
    },
  );
  const nothing = { approved: [], approvedBefore: [], queue: [], queueExpiresAt: -2 };
  account.adopt({ start: 0, limits: rulesIn('500:2:0').limits, ...nothing });
  /** The commands of one script. */
  const follow = (at: number, ...commands: [string, ...string[]][]): void => {
    for (const [name, ...args] of commands) account.follow({ at, isOfScript: true, name, args });
    account.endOfScript();
  };
  /** Since when the limit of an approval had counted in the same way. */
  const since = (id: string): number | undefined => countsSince.get(id);
  return { account, violations, approved, limits, windows, unsure, since, follow };
}

const hasMaximum = (maximum: number): [string, ...string[]] => [
  ...(['hset', names.state, 'limits', `500:${maximum}*:0`] as const),
];

const waits = (id: string, ticket: number): [string, ...string[]] => [
  ...(['hset', names.waiting, id, String(ticket)] as const),
];

const withdraws = (id: string): [string, ...string[]] => ['hdel', names.waiting, id];

test('more approvals in a window than its maximum are found', () => {
  const { violations, follow } = openAccount();
  follow(1, ['sadd', names.requests, 'a', 'b']);
  expect(violations).toEqual([]);
  follow(2, ['sadd', names.requests, 'c']);
  expect(violations).toEqual([expect.stringContaining('3 approved')]);
});

test('the maximum is the last one that scripts gave the key', () => {
  const { violations, limits, follow } = openAccount();
  follow(1, ['sadd', names.requests, 'a', 'b', 'c'], hasMaximum(3));
  expect(violations).toEqual([]);
  follow(2, hasMaximum(3));
  follow(3, hasMaximum(1));
  expect(violations).toEqual([]);
  expect(limits).toEqual([3, 1]);
  follow(4, ['srem', names.requests, 'a'], ['sadd', names.requests, 'd']);
  expect(violations).toEqual([expect.stringContaining('3 approved in one window, and not 1')]);
});

test('a key that is made again with the limits that it had is told', () => {
  const { limits, follow } = openAccount();
  follow(1, hasMaximum(3));
  follow(2, [...hasMaximum(3), 'born', '2']);
  expect(limits).toEqual([3, 3]);
});

test('limits that a key was given before its state was known are told', () => {
  const { account, limits } = openAccount();
  const reply = ['0', [], [], -2, [], '500:5:0', '', [], '7', '', []];
  account.doubt();
  account.adopt(parseSnapshot(reply));
  expect(limits).toEqual([5]);
});

test.each([
  ['made', '7', ''],
  ['changed', '3', '7'],
  ['made again after a loss', '7', '3'],
])('a snapshot tells when the limits of a key came that was %s', (_, born, changed) => {
  const reply = ['0', [], [], -2, [], '500:5:0', '', [], born, changed, []];
  expect(parseSnapshot(reply).limitsSince).toBe(7);
});

test('a snapshot may have more than a lowered maximum, but not more than the highest maximum', () => {
  const { account, violations } = openAccount();
  const { limits } = rulesIn('500:2:0');
  const snapshot = { start: 0, limits, approvedBefore: [], queue: [], queueExpiresAt: -2 };
  account.adopt({ ...snapshot, approved: 'a b c d e f g h i'.split(' ') });
  expect(violations).toEqual([]);
  account.adopt({ ...snapshot, approved: 'a b c d e f g h i j'.split(' ') });
  expect(violations).toHaveLength(1);
});

test('a new window or a released approval makes room', () => {
  const { violations, approved, follow } = openAccount();
  follow(1, ['sadd', names.requests, 'a', 'b'], ['srem', names.requests, 'a']);
  follow(2, ['sadd', names.requests, 'c']);
  follow(3, ['hset', names.state, 'start', '500'], ['sadd', names.requests, 'd', 'e']);
  follow(4, ['sadd', names.requests, 'f'], ['hset', names.state, 'start', '1000']);
  expect(violations).toEqual([]);
  expect(approved).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
});

test('a window of another calendar may begin when the last one began', () => {
  const { violations, follow } = openAccount();
  const ofWeek: [string, ...string[]] = [
    'hset',
    names.state,
    'limits',
    '500:2:0,=calendar:week.UTC',
  ];
  follow(1, ['sadd', names.requests, 'a', 'b'], ['hset', names.state, 'start', '0']);
  follow(2, ['rename', names.requests, names.pastRequests[0]!], ofWeek);
  follow(3, ['sadd', names.requests, 'c', 'd'], ['hset', names.state, 'start', '0']);
  expect(violations).toEqual([]);
  follow(4, ['sadd', names.requests, 'e']);
  expect(violations).toEqual([expect.stringContaining('3 approved in one window, and not 2')]);
});

test('how long a limit has counted in the same way is told with each approval', () => {
  const { since, follow } = openAccount();
  const ofDays = (maximum: number): [string, ...string[]] => [
    ...(['hset', names.state, 'limits', `500:${maximum}:0,=calendar:day.Europe.Berlin`] as const),
  ];
  follow(5, ofDays(3), ['sadd', names.requests, 'a']);
  follow(9, ofDays(4), ['sadd', names.requests, 'b']);
  follow(12, hasMaximum(4), ['sadd', names.requests, 'c']);
  follow(15, ofDays(4), ['sadd', names.requests, 'd']);
  expect(since('a')).toBe(5);
  expect(since('b')).toBe(5);
  expect(since('c')).toBe(12);
  expect(since('d')).toBe(15);
});

test('a second approval of a request is found, also in a later window', () => {
  const { violations, follow } = openAccount();
  follow(1, ['sadd', names.requests, 'a']);
  follow(2, ['rename', names.requests, names.pastRequests[0]!]);
  follow(3, ['sadd', names.requests, 'a']);
  expect(violations).toEqual([expect.stringContaining('approved a twice')]);
});

test('a second approval of a request is not found once the first is forgotten', () => {
  const { violations, follow } = openAccount();
  follow(1, ['sadd', names.requests, 'a']);
  follow(leastMemoryMillis(), ['sadd', names.requests, 'a']);
  expect(violations).toEqual([expect.stringContaining('approved a twice')]);
  follow(2 * leastMemoryMillis(), ['sadd', names.requests, 'a']);
  expect(violations).toHaveLength(1);
});

test('a second approval of a request is not found later than rules with other windows promise', () => {
  const ofLongerWindows: [string, ...string[]] = ['hset', names.state, 'limits', '700:2:0'];
  const remembered = 3 * 700;
  for (const [at, found] of [
    [remembered, 1],
    [remembered + 1, 0],
  ] as const) {
    const { violations, follow } = openAccount();
    follow(1, ['sadd', names.requests, 'a']);
    follow(500, ofLongerWindows);
    follow(at, ['sadd', names.requests, 'a']);
    expect(violations).toHaveLength(found);
  }
});

test('waiters that are put back take their old places', () => {
  const { violations, follow } = openAccount();
  follow(1, waits('newcomer', 10));
  follow(2, ['lindex', names.queue, '-1'], waits('returned', 5));
  follow(3, ['sadd', names.requests, 'returned'], withdraws('returned'));
  expect(violations).toEqual([]);
  follow(4, waits('late', 7));
  expect(violations).toEqual([expect.stringContaining('ticket 7 after 10')]);
});

test('an approval at once while others wait is found, and one from the head of the queue is not', () => {
  const { violations, follow } = openAccount();
  follow(1, waits('first', 1), waits('second', 2));
  follow(2, ['sadd', names.requests, 'first'], withdraws('first'));
  expect(violations).toEqual([]);
  follow(3, ['sadd', names.requests, 'newcomer']);
  expect(violations).toEqual([expect.stringContaining('newcomer')]);
});

test('a waiter that is served before an earlier one is found', () => {
  const { violations, follow } = openAccount();
  follow(1, waits('first', 1), waits('second', 2));
  follow(2, ['sadd', names.requests, 'second'], withdraws('second'));
  expect(violations).toEqual([expect.stringContaining('approved second before 1')]);
});

test.each(['group:a', 'lane:batch'])(
  'an approval at once may pass those that wait in %s',
  (list) => {
    const { violations, follow } = openAccount();
    follow(1, ['hset', names.waiting, 'waiter', `1:${list}`]);
    follow(2, ['sadd', names.requests, 'newcomer']);
    expect(violations).toEqual([]);
  },
);

test('a waiter that is put back in a lane keeps its ticket', () => {
  const { violations, follow } = openAccount();
  const entry = 'lane:batch 0000000000000005:returned^0@r';
  follow(1, ['hset', names.waiting, 'newcomer', '10:lane:batch']);
  follow(2, ['hset', names.waiting, 'returned', '5:lane:batch'], ['zadd', names.queue, '0', entry]);
  expect(violations).toEqual([]);
});

test('checks of one call may be approved while there is room, and the others wait', () => {
  const { violations, follow } = openAccount();
  follow(1, ['sadd', names.requests, 'a', 'b'], waits('c', 1));
  expect(violations).toEqual([]);
});

test('a ticket that is not the last, or another ticket for a waiter that is put back, is found', () => {
  const { violations, follow } = openAccount();
  follow(1, waits('first', 10), waits('second', 9));
  expect(violations).toEqual([expect.stringContaining('second')]);
  follow(2, ['lindex', names.queue, '-1'], waits('first', 11));
  expect(violations).toHaveLength(2);
});

test('waiters in an expired queue do not count', () => {
  const { violations, follow } = openAccount();
  follow(1, waits('first', 1), ['pexpireat', names.waiting, '100']);
  follow(100, ['sadd', names.requests, 'newcomer']);
  expect(violations).toEqual([]);
});

test('an approval is known even if the rest of its script is not', () => {
  const { account, approved } = openAccount();
  account.follow({ at: 1, isOfScript: true, name: 'sadd', args: [names.requests, 'a'] });
  account.doubt();
  expect(approved).toEqual(['a']);
});

test('nothing is judged once another client has changed the key', () => {
  const { account, violations, follow } = openAccount();
  const restore = { at: 1, isOfScript: false, name: 'restore', args: [names.queue, '0', 'x'] };
  expect(account.isChangedBy(restore)).toBe(true);
  account.doubt();
  follow(2, ['sadd', names.requests, 'a', 'b', 'c']);
  expect(violations).toEqual([]);
});

describe('held approvals', () => {
  const holds = (id: string): [string, ...string[]] => ['hset', names.holds, id, '9000:1000'];

  test('count until they end, whatever window begins', () => {
    const { violations, approved, follow } = openAccount();
    follow(1, holds('a'), holds('b'));
    follow(600, ['hset', names.state, 'start', '500'], holds('a'));
    expect(approved).toEqual(['a', 'b']);
    expect(violations).toEqual([]);
    follow(601, ['sadd', names.requests, 'c']);
    expect(violations).toEqual([expect.stringContaining('3 approved')]);
    follow(602, ['hdel', names.holds, 'a'], ['hdel', names.holds, 'b']);
    follow(603, holds('d'));
    expect(violations).toHaveLength(1);
  });

  test('may be renewals where it is not known whose approvals are held', () => {
    const { account, approved, unsure, follow } = openAccount();
    follow(1, holds('a'));
    account.doubt();
    follow(2, holds('a'), ['sadd', names.requests, 'b']);
    expect(approved).toEqual(['a', 'a', 'b']);
    expect(unsure).toEqual(['a']);
  });
});

test('an approval is in the window of each further limit that its script leaves', () => {
  const { windows, limits, follow } = openAccount();
  const further = (text: string): [string, ...string[]] => ['hset', names.state, 'further', text];
  follow(1, ['sadd', names.requests, 'a'], further('x=5:1,y=3:1'));
  follow(2, ['hdel', names.state, 'more', 'further']);
  follow(3, ['sadd', names.requests, 'b']);
  expect(windows).toEqual([
    [
      ['x', 5],
      ['y', 3],
    ],
    [],
  ]);
  follow(4, ['hset', names.state, 'limits', '500:2:0,x=1000:3:hits']);
  expect(limits).toEqual([2]);
});
