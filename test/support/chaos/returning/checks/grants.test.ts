import { approvedTwice, wrongGrants } from './grants.js';
import {
  confirmed,
  evidenceOf,
  fault,
  granted,
  lapsed,
  released,
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
  test('are one too many', () => {
    const runs = [run(100, granted('a', 1100)), run(200, granted('a', 1200))];
    expect(approvedTwice({ runs })).toHaveLength(1);
  });

  test('are right if the first has lapsed or was released', () => {
    const again = run(2000, granted('a', 3000));
    expect(
      approvedTwice({ runs: [run(1, granted('a', 9)), run(9, lapsed('a', 9)), again] }),
    ).toEqual([]);
    expect(
      approvedTwice({ runs: [run(1, granted('a', 9)), run(8, released('a')), again] }),
    ).toEqual([]);
  });
});
