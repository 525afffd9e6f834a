import type { FaultRecord } from '../../faults/fault.js';
import type { Visit } from '../visits.js';
import { lostPlaces, lostTurns } from './places.js';
import {
  approved,
  ended,
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
} from './sample-evidence.js';

const arrival = run(100, joined('a', 10), owned('a'));

describe('a place that leaves the queue without an approval', () => {
  /** Of a caller that keeps it for a second. */
  const lost = (
    at: number,
    visits: readonly Visit[],
    faults: readonly FaultRecord[] = [],
    returns = [] as ReturnType<typeof run>[],
  ): string[] =>
    lostPlaces(
      evidenceOf({ runs: [arrival, ...returns, run(at, withdrawn('a'))], visits, faults }),
    );

  test('is lost while its caller is connected', () => {
    expect(lost(900, [visit('a', { endedAt: 5000 })])).toHaveLength(1);
  });

  test('is lost within the time for which it is kept, and not after that', () => {
    expect(lost(1990, [visit('a', { endedAt: 1000 })])).toHaveLength(1);
    expect(lost(2000, [visit('a', { endedAt: 1000 })])).toEqual([]);
  });

  test('is lost if its caller has come back in time', () => {
    const visits = [
      visit('a', { endedAt: 1000 }),
      visit('a', { sentAt: 1500, endedAt: 3000, replicaId: 'r1', replica: 1 }),
    ];
    expect(lost(2500, visits, [], [run(1510, owned('a', 'r1'))])).toHaveLength(1);
  });

  test('is not lost to a caller whose return has not reached Redis', () => {
    const visits = [
      visit('a', { endedAt: 1000 }),
      visit('a', { sentAt: 1500, endedAt: 3000, replicaId: 'r1', replica: 1 }),
    ];
    expect(lost(2500, visits)).toEqual([]);
  });

  test('may be lost if the machine stood still until leases ran out', () => {
    const runs = [arrival, run(900, withdrawn('a'))];
    const evidence = evidenceOf({ runs, visits: [visit('a', { endedAt: 5000 })] });
    const stoodStill = (millis: number): string[] =>
      lostPlaces({ ...evidence, longestStandstill: () => millis });
    expect(stoodStill(1300)).toHaveLength(1);
    expect(stoodStill(1400)).toEqual([]);
  });

  test('may be released by its caller', () => {
    const visits = [
      visit('a', { endedAt: 1000 }),
      visit('a', { kind: 'release', sentAt: 1100, endedAt: 1200, status: 200 }),
    ];
    expect(lost(1150, visits)).toEqual([]);
    expect(lost(1900, visits)).toHaveLength(1);
  });

  test('may be withdrawn at the end of the longest wait, and not before', () => {
    const terms = termsOf('a', { maxWaitMillis: 500 });
    const visits = [visit('a', { terms, endedAt: 5000 })];
    expect(lost(600, visits)).toEqual([]);
    expect(lost(590, visits)).toHaveLength(1);
  });

  test('belongs to another caller as soon as another check has taken over', () => {
    const visits = [
      visit('a', { endedAt: 5000, outcome: 'answered', status: 409 }),
      visit('a', { sentAt: 50, endedAt: 80, replicaId: 'r1', replica: 1 }),
    ];
    const takenOver = [run(1000, owned('a', 'r1'))];
    expect(lost(1900, visits, [], takenOver)).toHaveLength(1);
    expect(lost(2100, visits, [], takenOver)).toEqual([]);
  });

  test('belongs to the other caller also if the first one leaves before it is told', () => {
    const visits = [
      visit('a', { endedAt: 1500 }),
      visit('a', { sentAt: 50, endedAt: 1010, replicaId: 'r1', replica: 1 }),
    ];
    const takenOver = [run(1000, owned('a', 'r1'))];
    expect(lost(2000, visits, [], takenOver)).toHaveLength(1);
    expect(lost(2100, visits, [], takenOver)).toEqual([]);
  });

  test('is kept from the moment in which a frozen replica can no longer be known to live', () => {
    const visits = [visit('a', { endedAt: 9000 })];
    // Two thirds of a lease after the replica has stopped, and the second for which it is kept.
    const frozen = [fault({ stops: [0], beganAt: 1000, endedAt: 8000 })];
    expect(lost(3300, visits, frozen)).toHaveLength(1);
    expect(lost(3400, visits, frozen)).toEqual([]);
    expect(lost(3400, visits, [fault({ stops: [1], beganAt: 1000, endedAt: 8000 })])).toHaveLength(
      1,
    );
  });

  test('is lost if the frozen replica has long been well again', () => {
    const visits = [visit('a', { endedAt: 9000 })];
    const frozen = [fault({ stops: [0], beganAt: 1000, endedAt: 1200 })];
    expect(lost(8000, visits, frozen)).toHaveLength(1);
  });
});

test('an approval is lost if it is given back to a caller that was connected a moment ago', () => {
  const givenBack = (at: number) =>
    evidenceOf({
      runs: [run(100, owned('a'), approved('a')), run(at, ended('a'))],
      visits: [visit('a', { endedAt: 1000 })],
    });
  expect(lostPlaces(givenBack(1900))).toHaveLength(1);
  expect(lostPlaces(givenBack(2000))).toEqual([]);
});

describe('an approval that lapses before it is confirmed', () => {
  const lapse = (visits: readonly Visit[], faults: readonly FaultRecord[] = []): string[] => {
    const runs = [
      arrival,
      run(500, granted('a', 1500)),
      run(600, owned('a', 'r1')),
      run(1600, lapsed('a', 1500)),
    ];
    return lostTurns(evidenceOf({ runs, visits, faults }));
  };
  const gone = visit('a', { endedAt: 300 });
  const elsewhere = { replica: 1, replicaId: 'r1' };

  test('is not lost if its caller has not come back', () => {
    expect(lapse([gone])).toEqual([]);
  });

  test('is lost if its caller has come back in time and waits at a replica that is well', () => {
    const runs = [
      arrival,
      run(400, owned('a', 'r1')),
      run(500, granted('a', 2000, 1500)),
      run(2100, lapsed('a', 2000, 1500)),
    ];
    const back = visit('a', { ...elsewhere, sentAt: 390, endedAt: 2200 });
    const evidence = evidenceOf({ runs, visits: [gone, back] });
    expect(lostTurns(evidence)).toHaveLength(1);
    expect(lostTurns({ ...evidence, lateMillis: () => 500 })).toEqual([]);
    const stops = fault({ stops: [1], beganAt: 1900 });
    expect(lostTurns({ ...evidence, faults: [stops] })).toEqual([]);
  });

  test('is lost to a caller that was told of it', () => {
    expect(lapse([visit('a', { endedAt: 700, outcome: 'answered', status: 200 })])).toHaveLength(1);
  });
});
