import { approvedTwice, wrongGrants } from './grants.js';
import {
  approved,
  confirmed,
  evidenceOf,
  fault,
  granted,
  lapsed,
  owned,
  ended,
  run,
  termsOf,
  visit,
} from './sample-evidence.js';

describe('a grant', () => {
  const there = [visit('a', { sentAt: 0, endedAt: 5000 })];

  test('is right if it is held as long as its caller wants, and confirmed in time', () => {
    const runs = [run(100, granted('a', 1100)), run(110, confirmed('a'))];
    expect(wrongGrants(evidenceOf({ runs, visits: there }))).toEqual([]);
  });

  test('that is held for another time is found', () => {
    const runs = [run(100, granted('a', 1200, 1100))];
    expect(wrongGrants(evidenceOf({ runs, visits: there }))).toEqual([
      expect.stringContaining('was held for 1100 ms, and not 1000 ms'),
    ]);
  });

  test('that needs no confirmation is found', () => {
    const runs = [run(100, { id: 'a', what: 'served' as const })];
    expect(wrongGrants(evidenceOf({ runs, visits: there }))).toHaveLength(1);
  });

  test('that is confirmed after its end is found', () => {
    const runs = [run(100, granted('a', 1100)), run(1110, confirmed('a'))];
    expect(wrongGrants(evidenceOf({ runs, visits: there }))).toHaveLength(1);
  });

  test('that becomes something else than its caller asked for is found', () => {
    const runs = [run(100, granted('a', 1100)), run(110, confirmed('a'))];
    const terms = termsOf('a', { holdMillis: 2000 });
    const visits = [visit('a', { terms, endedAt: 5000 })];
    expect(wrongGrants(evidenceOf({ runs, visits }))).toHaveLength(1);
  });

  test('that is confirmed while its caller is not connected is found, if its replica could know that', () => {
    const runs = [run(1000, granted('a', 2000)), run(1900, confirmed('a'))];
    const confirmedAfter = (endedAt: number) =>
      evidenceOf({ runs, visits: [visit('a', { endedAt })] });
    expect(wrongGrants(confirmedAfter(1390))).toHaveLength(1);
    expect(wrongGrants(confirmedAfter(1400))).toEqual([]);
    const frozen = [fault({ stops: [0], beganAt: 1300, endedAt: 1800 })];
    expect(wrongGrants({ ...confirmedAfter(1390), faults: frozen })).toEqual([]);
  });
});

describe('two approvals of a request', () => {
  const again = (at: number) => run(at, granted('a', at + 1000));

  test('are one too many while the first is remembered', () => {
    expect(approvedTwice({ runs: [run(100, granted('a', 1100)), again(200)] })).toHaveLength(1);
    expect(approvedTwice({ runs: [run(0, approved('a')), again(2900)] })).toHaveLength(1);
    expect(approvedTwice({ runs: [run(0, approved('a')), again(3000)] })).toEqual([]);
    const asked = [run(0, approved('a')), run(2000, owned('a', 'r1')), again(4900)];
    expect(approvedTwice({ runs: asked })).toHaveLength(1);
  });

  test('are right if the first has lapsed or was released', () => {
    const first = run(1, granted('a', 9));
    expect(approvedTwice({ runs: [first, run(9, lapsed('a', 9)), again(2000)] })).toEqual([]);
    expect(approvedTwice({ runs: [first, run(8, ended('a')), again(2000)] })).toEqual([]);
  });
});
