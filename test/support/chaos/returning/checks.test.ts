import { KeyNaming } from '../../../../src/redis/shared/key-names.js';
import type { FaultRecord } from '../faults/fault.js';
import { wrongAnswers } from './checks/answers.js';
import { wrongGrants } from './checks/grants.js';
import { lostPlaces, lostTurns } from './checks/places.js';
import {
  confirmed,
  evidenceOf,
  fault,
  granted,
  joined,
  lapsed,
  owned,
  run,
  termsOf,
  visit,
  withdrawn,
} from './checks/sample-evidence.js';
import { KeyHistory, type Run } from './key-history.js';
import type { Visit } from './visits.js';

const arrival = run(100, joined('a', 10), owned('a'));

test('what a script did is known from its commands', () => {
  const names = new KeyNaming('sluice:').namesOf('key');
  const { queue, lapses, requests, records } = names;
  const history = new KeyHistory(names);
  const script = (at: number, ...commands: readonly string[]): Run => {
    for (const command of commands) {
      const [name = '', ...args] = command.split(' ');
      history.follow({ at, name, args, isOfScript: true }, at);
    }
    return history.endOfScript(at);
  };
  const whatOf = (at: number, ...commands: readonly string[]): string[] =>
    script(at, ...commands).happenings.map(({ what }) => what);
  const join = (owner = 'r0#1'): string =>
    `hset ${records} a {"state":"waiting","ticket":"10","owner":"${owner}"}`;
  const grant = [
    `zadd ${lapses} NX 1500 a`,
    `hset ${records} a {"state":"unclaimed","keepMillis":1000,"owner":"r0#1"}`,
  ];
  const approve = [
    `sadd ${requests} a`,
    `zrem ${lapses} a`,
    `hset ${records} a {"state":"approved","owner":"r0#1"}`,
  ];
  expect(whatOf(1, join())).toEqual(['joined', 'owned']);
  expect(whatOf(2, join())).toEqual([]);
  expect(whatOf(3, join('r0#2'))).toEqual(['owned']);
  expect(whatOf(3, join('r1#1'))).toEqual(['owned']);
  expect(whatOf(4, join())).toEqual(['owned']);
  expect(script(500, ...grant).happenings).toEqual([
    { id: 'a', what: 'granted', hold: { lapsesAt: 1500, millis: 1000 } },
  ]);
  expect(whatOf(510, ...approve)).toEqual(['confirmed']);
  expect(whatOf(600, `srem ${requests} a`, join())).toEqual(['ended', 'joined']);
  expect(whatOf(700, ...grant)).toEqual(['granted']);
  expect(whatOf(1500, `hdel ${records} a`, `sadd ${requests} a`)).toEqual(['lapsed', 'approved']);
  expect(
    whatOf(1600, `hset ${records} b {"state":"waiting","ticket":"20"}`, `pexpireat ${queue} 5000`),
  ).toEqual(['joined']);
  expect(history.expired(5001)?.happenings).toEqual([{ id: 'b', what: 'withdrawn' }]);
});

describe('an answer', () => {
  const inTime = [run(500, granted('a', 1500)), run(501, confirmed('a'))];
  const wrong = (
    fields: Partial<Visit>,
    others: { visits?: readonly Visit[]; faults?: readonly FaultRecord[]; runs?: Run[] } = {},
  ): string[] => {
    const { visits = [], faults = [], runs = inTime } = others;
    const answered = visit('a', { outcome: 'answered', ...fields });
    return wrongAnswers(evidenceOf({ runs, visits: [answered, ...visits], faults }));
  };

  test('that is an approval is right once a script has confirmed it', () => {
    expect(wrong({ status: 200 })).toEqual([]);
    expect(wrong({ status: 200 }, { runs: [run(500, granted('a', 1500))] })).toHaveLength(1);
  });

  test('that is a place comes to those that prefer not to wait, and after their wait', () => {
    const body = JSON.stringify({ request_id: 'a', position: 1, waitMillis: 0 });
    expect(wrong({ status: 202, body })).toHaveLength(1);
    expect(wrong({ status: 202, body, preferSeconds: 1, endedAt: 2500 })).toEqual([]);
    expect(wrong({ status: 202, body, preferSeconds: 1, endedAt: 2501 })).toHaveLength(1);
  });

  test('that is a conflict is right if another check had the place', () => {
    const body = 'a later check with this requestId has taken over';
    expect(wrong({ status: 409, body })).toHaveLength(1);
    expect(wrong({ status: 409, body }, { visits: [visit('a', { sentAt: 800 })] })).toEqual([]);
  });

  test('that fails is right while a replica fails', () => {
    const unavailable = { status: 503, body: '', retryAfter: '1' };
    expect(wrong(unavailable)).toHaveLength(1);
    const faults = [fault({ isolates: [0], beganAt: 500 })];
    expect(wrong(unavailable, { faults })).toEqual([]);
  });

  test('has to come', () => {
    expect(wrong({ outcome: 'pending', endedAt: undefined })).toHaveLength(1);
  });
});

describe('a place that leaves the queue without an approval is lost', () => {
  /** Of a caller that keeps it for a second. */
  const lost = (
    at: number,
    visits: readonly Visit[],
    faults: readonly FaultRecord[] = [],
    ...runs: readonly Run[]
  ): string[] =>
    lostPlaces(evidenceOf({ runs: [arrival, ...runs, run(at, withdrawn('a'))], visits, faults }));

  test('while its caller is connected', () => {
    expect(lost(900, [visit('a', { endedAt: 5000 })])).toHaveLength(1);
  });

  test('within the time for which it is kept, and not after that', () => {
    expect(lost(1990, [visit('a', { endedAt: 1000 })])).toHaveLength(1);
    expect(lost(2000, [visit('a', { endedAt: 1000 })])).toEqual([]);
  });

  test('if its caller has come back in time', () => {
    const back = visit('a', { sentAt: 1500, endedAt: 3000, replicaId: 'r1', replica: 1 });
    const visits = [visit('a', { endedAt: 1000 }), back];
    expect(lost(2500, visits, [], run(1510, owned('a', 'r1')))).toHaveLength(1);
    expect(lost(2500, visits)).toEqual([]);
  });

  test('unless its caller releases it, or its longest wait is over', () => {
    const released = visit('a', { kind: 'release', sentAt: 1100, endedAt: 1200, status: 200 });
    expect(lost(1150, [visit('a', { endedAt: 1000 }), released])).toEqual([]);
    const visits = [visit('a', { terms: termsOf('a', { maxWaitMillis: 500 }), endedAt: 5000 })];
    expect(lost(600, visits)).toEqual([]);
    expect(lost(590, visits)).toHaveLength(1);
  });

  test('until a frozen replica can no longer be known to live', () => {
    const visits = [visit('a', { endedAt: 9000 })];
    // Two thirds of a lease after the replica has stopped, and the second for which it is kept.
    const frozen = [fault({ stops: [0], beganAt: 1000, endedAt: 8000 })];
    expect(lost(3300, visits, frozen)).toHaveLength(1);
    expect(lost(3400, visits, frozen)).toEqual([]);
  });
});

test('an approval is lost that lapses although its caller waits at a replica that is well', () => {
  const runs = [
    arrival,
    run(400, owned('a', 'r1')),
    run(500, granted('a', 2000, 1500)),
    run(2100, lapsed('a', 2000, 1500)),
  ];
  const back = visit('a', { replica: 1, replicaId: 'r1', sentAt: 390, endedAt: 2200 });
  const gone = visit('a', { endedAt: 300 });
  const evidence = evidenceOf({ runs, visits: [gone, back] });
  expect(lostTurns(evidence)).toHaveLength(1);
  expect(lostTurns({ ...evidence, faults: [fault({ stops: [1], beganAt: 1900 })] })).toEqual([]);
  expect(lostTurns(evidenceOf({ runs, visits: [gone] }))).toEqual([]);
});

test('a grant is wrong that is held for another time, or confirmed after its end or for nobody', () => {
  const wrong = (endedAt: number, ...runs: readonly Run[]): string[] =>
    wrongGrants(evidenceOf({ runs, visits: [visit('a', { endedAt })] }));
  expect(wrong(5000, run(100, granted('a', 1100)), run(110, confirmed('a')))).toEqual([]);
  expect(wrong(5000, run(100, granted('a', 1200, 1100)))).toHaveLength(1);
  expect(wrong(5000, run(100, granted('a', 1100)), run(1110, confirmed('a')))).toHaveLength(1);
  expect(wrong(1390, run(1000, granted('a', 2000)), run(1900, confirmed('a')))).toHaveLength(1);
  expect(wrong(1400, run(1000, granted('a', 2000)), run(1900, confirmed('a')))).toEqual([]);
});
