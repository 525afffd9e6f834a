import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import { leastMemoryMillis } from '../chaos/limits.js';
import { rulesIn } from '../rules-in.js';
import { uniqueKey } from '../unique-key.js';
import { useRedis } from '../use-redis.js';
import { ApprovalLedger } from './approval-ledger.js';
import { KeyAccount, type ObservedApproval } from './key-account.js';

const naming = new KeyNaming('sluice:');
const names = naming.namesOf('key');
const redis = useRedis();

type Command = readonly [name: string, ...args: string[]];

/** The record of a waiter with this ticket. */
function waiter(ticket: string): string {
  return `{"state":"waiting","ticket":"${ticket}"}`;
}

test('the account of a key has what scripts on its Redis approve, and finds too much', async () => {
  const key = uniqueKey();
  const { state, requests, records } = naming.namesOf(key);
  await redis.client.hset(state, 'limits', '2 500:1*:0', 'start', '0');
  const ledger = await ApprovalLedger.open(redis.client, key, 1);
  const script = (text: string): Promise<unknown> =>
    redis.client.eval(text, 3, state, requests, records);
  // The account begins to judge at the first command that it sees, and has read the key by the second.
  await script("redis.call('SADD', KEYS[2], 'first')");
  await ledger.upToNow();
  await script(
    `redis.call('HSET', KEYS[3], 'second', '${waiter('1')}', 'third', '${waiter('2')}')`,
  );
  await script("redis.call('SREM', KEYS[2], 'first')");
  await script("redis.call('SADD', KEYS[2], 'second') redis.call('HDEL', KEYS[3], 'second')");
  await ledger.upToNow();
  expect(ledger.violations).toEqual([]);
  expect(ledger.joined).toEqual(['second', 'third']);
  expect(ledger.served).toEqual(['second']);
  expect(ledger.approved).toEqual(['first', 'second']);
  expect(ledger.inWindow).toBe(1);

  await script("redis.call('HDEL', KEYS[3], 'third') redis.call('SADD', KEYS[2], 'fourth')");
  await ledger.close();
  expect(ledger.violations).toEqual([expect.stringMatching(/2 approved in one window/)]);
});

describe('the account of a key', () => {
  let account: KeyAccount;
  let violations: string[];
  let approved: ObservedApproval[];
  /** The maxima that the key was given. */
  let maxima: number[];
  beforeEach(() => {
    violations = [];
    approved = [];
    maxima = [];
    const bounds = { highestMaximum: 9, rememberedMillis: leastMemoryMillis };
    account = new KeyAccount(names, bounds, {
      onApproved: (approval) => approved.push(approval),
      onJoined: () => undefined,
      onLimits: ({ limits: [{ maximum }] }) => maxima.push(maximum),
      onViolation: (violation) => violations.push(violation),
    });
    const nothing = { approved: [], approvedBefore: [], queue: [], queueExpiresAt: -2 };
    account.adopt({ start: 0, limits: rulesIn('500:2:0').limits, ...nothing });
  });

  /** The commands of one script. */
  const follow = (at: number, ...commands: Command[]): void => {
    for (const [name, ...args] of commands) account.follow({ at, isOfScript: true, name, args });
    account.endOfScript();
  };
  const approves = (...ids: string[]): Command => ['sadd', names.requests, ...ids];
  const hasLimits = (limits: string): Command => ['hset', names.state, 'limits', `2 ${limits}`];
  const begins = (start: number): Command => ['hset', names.state, 'start', String(start)];
  const waits = (id: string, ticket: string): Command => [
    ...(['hset', names.records, id] as const),
    waiter(ticket),
  ];
  const leaves = (id: string): Command => ['hdel', names.records, id];
  const holds = (id: string): Command => ['hset', names.records, id, '{"holdMillis":900}'];

  test('finds more approvals in a window than the maximum that scripts gave the key', () => {
    follow(1, approves('a', 'b', 'c'), hasLimits('500:3*:0'));
    follow(2, hasLimits('500:1*:0'));
    follow(3, begins(500), approves('d'));
    follow(4, ['srem', names.requests, 'd'], approves('e'));
    expect(violations).toEqual([]);
    expect(maxima).toEqual([3, 1]);
    follow(5, approves('f'));
    expect(violations).toEqual([expect.stringContaining('2 approved in one window, and not 1')]);
  });

  test('counts what is held in each window until it lapses', () => {
    follow(1, holds('a'), holds('b'));
    follow(2, begins(500), ['hdel', names.records, 'a'], approves('c'));
    expect(violations).toEqual([]);
    follow(3, begins(1000), approves('d', 'e'));
    expect(violations).toEqual([expect.stringContaining('3 approved in one window, and not 2')]);
  });

  test('finds a second approval of a request until the first may be forgotten', () => {
    follow(1, approves('a'));
    follow(2, ['rename', names.requests, names.pastRequests[0]!]);
    follow(leastMemoryMillis(), approves('a'));
    expect(violations).toEqual([expect.stringContaining('approved a twice')]);
    follow(2 * leastMemoryMillis(), approves('a'));
    expect(violations).toHaveLength(1);
  });

  test('finds who is approved before those that wait, and not who is served in turn', () => {
    follow(1, waits('first', '1'), waits('second', '2'), waits('third', '3'));
    follow(2, approves('first'), leaves('first'));
    expect(violations).toEqual([]);
    follow(3, approves('newcomer'));
    expect(violations.splice(0)).toEqual([expect.stringContaining('newcomer at once while 2')]);
    follow(4, begins(500), approves('third'), leaves('third'));
    expect(violations).toEqual([expect.stringContaining('approved third before 1')]);
  });

  test('finds a ticket that is not the last, except the ticket of a waiter that is put back', () => {
    follow(1, waits('newcomer', '10'));
    follow(2, ['lindex', names.queue, '-1'], waits('returned', '5'));
    expect(violations).toEqual([]);
    follow(3, waits('late', '7'));
    expect(violations.splice(0)).toEqual([expect.stringContaining('ticket 7 after 10')]);
    follow(4, ['lindex', names.queue, '-1'], waits('returned', '6'));
    expect(violations).toEqual([expect.stringContaining('ticket 6 and not 5')]);
  });

  test('judges nothing while the state is not known', () => {
    account.doubt();
    follow(1, approves('a', 'b', 'c', 'd'));
    expect(violations).toEqual([]);
    expect(approved.map(({ id }) => id)).toEqual(['a', 'b', 'c', 'd']);
  });
});
