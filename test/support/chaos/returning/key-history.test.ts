import { KeyNaming } from '../../../../src/redis/shared/key-names.js';
import { KeyHistory, type Run } from './key-history.js';

const names = new KeyNaming('sluice:').namesOf('key');
const { state, waiting, holds, requests, records } = names;
const outcomes = names.outcomes[0]!;

/** What a script does that sends these commands. */
let script: (at: number, ...commands: readonly string[]) => Run;
let history: KeyHistory;

beforeEach(() => {
  history = new KeyHistory(names);
  script = (at, ...commands) => {
    for (const command of commands) {
      const [name = '', ...args] = command.split(' ');
      history.follow({ at, name, args, isOfScript: true }, at);
    }
    return history.endOfScript(at);
  };
});

const join = [`hset ${waiting} a 10`, `hset ${records} a 1:0:r0#1`];
const grant = [
  `hset ${holds} a 1500:1000`,
  `hdel ${waiting} a`,
  `hset ${outcomes} a granted:1:0:r0#1`,
];
const hold = { lapsesAt: 1500, millis: 1000 };

test('a waiter joins, changes its owner, and is withdrawn', () => {
  expect(script(1, ...join).happenings).toEqual([
    { id: 'a', what: 'joined', ticket: 10 },
    { id: 'a', what: 'owned', replicaId: 'r0' },
  ]);
  expect(script(2, `hset ${records} a 1:0:r1#1`).happenings).toEqual([
    { id: 'a', what: 'owned', replicaId: 'r1' },
  ]);
  expect(script(3, `hdel ${waiting} a`).happenings).toEqual([{ id: 'a', what: 'withdrawn' }]);
});

test('a waiter that is put back in its place has never joined again', () => {
  script(1, ...join);
  expect(script(2, ...join).happenings).toEqual([]);
});

test('a grant is held until it is confirmed', () => {
  script(1, ...join);
  expect(script(500, ...grant).happenings).toEqual([{ id: 'a', what: 'granted', hold }]);
  expect(script(510, `sadd ${requests} a`, `hdel ${holds} a`).happenings).toEqual([
    { id: 'a', what: 'confirmed', hold: undefined },
  ]);
});

test('a confirmation may hold the approval for another time', () => {
  script(1, ...join);
  script(500, ...grant);
  expect(script(510, `hset ${holds} a 2510:2000*3`).happenings).toEqual([
    { id: 'a', what: 'confirmed', hold: { lapsesAt: 2510, millis: 2000 } },
  ]);
  expect(script(2600, `unlink ${holds} ${holds}:order`).happenings).toEqual([
    { id: 'a', what: 'lapsed', hold: expect.anything() as unknown, isGrant: false },
  ]);
});

test('a grant ends at its time, or by a release', () => {
  script(1, ...join);
  script(500, ...grant);
  expect(script(1500, `unlink ${holds}`).happenings).toEqual([
    { id: 'a', what: 'lapsed', hold: expect.objectContaining(hold) as unknown, isGrant: true },
  ]);
  script(1600, ...join);
  script(1700, `hset ${holds} a 2700:1000`, `hdel ${waiting} a`);
  const release = script(1800, `hdel ${holds} a`, `hset ${outcomes} a released:1:0:r0#1`);
  expect(release.happenings).toEqual([{ id: 'a', what: 'ended' }]);
});

test('one script may grant and confirm, and may end a grant and approve again', () => {
  script(1, ...join);
  const both = script(500, ...grant, `sadd ${requests} a`, `hdel ${holds} a`);
  expect(both.happenings.map(({ what }) => what)).toEqual(['granted', 'confirmed']);
  script(600, `srem ${requests} a`, ...join);
  script(700, ...grant);
  const again = script(1500, `hdel ${holds} a`, `sadd ${requests} a`);
  expect(again.happenings.map(({ what }) => what)).toEqual(['lapsed', 'approved']);
});

test('an approval that is given back has ended', () => {
  script(1, `sadd ${requests} a`);
  expect(script(2, `srem ${requests} a b`).happenings).toEqual([{ id: 'a', what: 'ended' }]);
  expect(script(3, `srem ${requests} a`).happenings).toEqual([]);
});

test('an approval that nothing has waited for is given at once', () => {
  expect(script(1, `sadd ${requests} a`).happenings).toEqual([
    { id: 'a', what: 'approved', hold: undefined },
  ]);
  expect(script(1, `hset ${holds} b 2001:2000`).happenings).toEqual([
    { id: 'b', what: 'approved', hold: { lapsesAt: 2001, millis: 2000 } },
  ]);
});

test('an approval of the queue that is not held is for good', () => {
  script(1, ...join);
  expect(script(2, `sadd ${requests} a`, `hdel ${waiting} a`).happenings).toEqual([
    { id: 'a', what: 'served' },
  ]);
});

test('a queue that is removed, or that expires unnoticed, loses its waiters', () => {
  script(1, ...join, `pexpireat ${waiting} 5000`);
  expect(history.expired(4999)).toBeUndefined();
  expect(history.expired(5001)).toMatchObject({
    at: 5000,
    happenings: [{ id: 'a', what: 'withdrawn' }],
  });
  script(5001, ...join);
  expect(script(5002, `unlink ${waiting}`).happenings).toEqual([{ id: 'a', what: 'withdrawn' }]);
});

test('the beginning of a window is known', () => {
  expect(script(1000, `hset ${state} limits 1000:10:400 start 1000`).windowStart).toBe(1000);
  expect(script(1001, `hset ${state} limits start`).windowStart).toBeUndefined();
});
