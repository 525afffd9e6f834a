import { Client } from '../../../src/limiter/client.js';
import type { Decision } from '../../../src/limiter/limiter.js';
import { Waiter } from '../../../src/limiter/waiter.js';

const APPROVED: Decision = { outcome: 'approved', requestId: 'a' };
const DENIED: Decision = { outcome: 'denied', reason: 'queue_full', retryAfterMillis: 5 };
const WITHDRAWN: Decision = { outcome: 'withdrawn' };

/** Every way in which a waiter can end, and what its promise then settles to. */
const ENDS: [string, (waiter: Waiter, client: Client) => unknown, unknown][] = [
  ['an approval', (waiter) => waiter.approve(), APPROVED],
  [
    'an approval from the queue',
    (waiter) => waiter.approveFromQueue(),
    { ...APPROVED, waited: true },
  ],
  ['a refusal', (waiter) => waiter.decide(DENIED), DENIED],
  [
    'a failure',
    (waiter) => {
      waiter.fail(new Error('lost'));
    },
    new Error('lost'),
  ],
  [
    "the client's leaving",
    (_waiter, client) => {
      client.leave();
    },
    WITHDRAWN,
  ],
];

function clientThatHasLeft(): Client {
  const client = new Client();
  client.leave();
  return client;
}

test('is undecided at first', () => {
  expect(new Waiter('a').decided).toBe(false);
});

describe.each(ENDS)('%s', (first, end, outcome) => {
  let waiter: Waiter;
  let client: Client;
  let settled: Promise<unknown>;
  let withdrawals: number;
  beforeEach(() => {
    waiter = new Waiter('a');
    settled = waiter.decision.catch((error: unknown) => error);
    client = new Client();
    withdrawals = 0;
    waiter.withdrawOn(client, () => (withdrawals += 1));
  });

  test('decides the request', async () => {
    end(waiter, client);
    expect(waiter.decided).toBe(true);
    expect(await settled).toEqual(outcome);
    expect(withdrawals).toBe(outcome === WITHDRAWN ? 1 : 0);
  });

  test('no longer listens to the client', () => {
    expect(client.onLeave).toBeDefined();
    end(waiter, client);
    if (outcome !== WITHDRAWN) client.leave();
    expect(client.onLeave).toBeUndefined();
    expect(withdrawals).toBe(outcome === WITHDRAWN ? 1 : 0);
  });

  test.each(ENDS)('holds against %s that comes later', async (_later, endAgain) => {
    end(waiter, client);
    endAgain(waiter, client);
    expect(await settled).toEqual(outcome);
    expect(withdrawals).toBe(first === "the client's leaving" ? 1 : 0);
  });

  test('is told to an approval or a refusal that comes later', () => {
    end(waiter, client);
    expect(waiter.approve()).toBe(false);
    expect(waiter.approveFromQueue()).toBe(false);
    expect(waiter.decide(DENIED)).toBe(false);
  });
});

test('an approval or a refusal that comes first is told so', () => {
  expect(new Waiter('a').approve()).toBe(true);
  expect(new Waiter('a').approveFromQueue()).toBe(true);
  expect(new Waiter('a').decide(DENIED)).toBe(true);
});

test('a client that has left already withdraws at once', async () => {
  const waiter = new Waiter('a');
  const client = clientThatHasLeft();
  let withdrawals = 0;
  waiter.withdrawOn(client, () => (withdrawals += 1));
  expect(withdrawals).toBe(1);
  expect(await waiter.decision).toEqual(WITHDRAWN);
  expect(client.onLeave).toBeUndefined();
});

test('a client that had left before the request was decided changes nothing', async () => {
  const waiter = new Waiter('a');
  waiter.approve();
  let withdrawals = 0;
  waiter.withdrawOn(clientThatHasLeft(), () => (withdrawals += 1));
  expect(withdrawals).toBe(0);
  expect(await waiter.decision).toEqual(APPROVED);
});

test('a waiter without a client can be decided', async () => {
  const waiter = new Waiter('a');
  waiter.withdrawOn(undefined, () => {
    throw new Error('nobody can have left');
  });
  waiter.approve();
  expect(await waiter.decision).toEqual(APPROVED);
});
