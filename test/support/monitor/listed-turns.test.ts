import { type LimitInForce, ownLimit } from '../../../src/limiter/limits.js';
import { KeyNaming } from '../../../src/redis/shared/key-names.js';
import { ListedTurns } from './listed-turns.js';

const names = new KeyNaming('sluice:').namesOf('key');
type Command = readonly [name: string, ...args: string[]];

/** A microsecond of Redis as a ticket. */
const ticket = (millis: number): string => String(millis * 1000).padStart(16, '0');
const interactive = (id: string, at: number): string =>
  `lane:interactive ${ticket(at)}:${id}^2000@replica`;
const batch = (id: string, at: number): string => `lane:batch ${ticket(at)}:${id}^0@replica`;
const ofGroup = (group: string, id: string, at: number, hits = 1): string =>
  `group:${group} ${ticket(at)}:${id}${hits > 1 ? `*${hits}` : ''}^1@replica`;

const join = (...entries: string[]): Command => [
  'zadd',
  names.queue,
  ...entries.flatMap((entry) => ['0', entry]),
];
const leave = (...ids: string[]): Command => ['hdel', names.waiting, ...ids];
const removed: Command = ['unlink', names.queue, names.waiting];
const wake = (...granted: string[]): Command => [
  ...(['publish', names.wakeChannel, JSON.stringify({ granted })] as const),
];

/** Follows one script. @returns the promises that it broke */
function script(turns: ListedTurns, approved: string[], ...commands: Command[]) {
  return scriptBy([], turns, approved, ...commands);
}

function scriptBy(
  limits: readonly LimitInForce[],
  turns: ListedTurns,
  approved: string[],
  ...commands: Command[]
) {
  for (const [name, ...args] of commands) turns.follow({ at: 0, isOfScript: true, name, args });
  return turns.endOfScript(new Set(approved), limits);
}

test('a lane may pass another by its head start, and by no more', () => {
  const turns = new ListedTurns(names, [batch('early', 0), batch('late', 1500)]);
  script(turns, [], join(interactive('user', 3000)));
  const early = script(turns, ['early'], leave('early'), wake('early'));
  expect(early).toEqual({ turns: 1, violations: [] });
  const late = script(turns, ['late'], leave('late'), wake('late'));
  expect(late.violations).toEqual([expect.stringContaining('late passed user')]);
});

test('turns have the order of the wake, also when a script removes an empty queue', () => {
  const entries = [batch('early', 0), interactive('user', 1)];
  const inTurn = script(
    new ListedTurns(names, entries),
    ['early', 'user'],
    removed,
    wake('user', 'early'),
  );
  expect(inTurn).toEqual({ turns: 2, violations: [] });
  const wrong = script(
    new ListedTurns(names, entries),
    ['early', 'user'],
    removed,
    wake('early', 'user'),
  );
  expect(wrong.violations).toEqual([expect.stringContaining('early passed user')]);
});

test('a limit that counts only one lane stops no other, and stops all that it counts', () => {
  const own = ownLimit(1000, 9);
  const limits = [own, { ...own, name: 'share', lanes: ['interactive'] }];
  const entries = [batch('late', 2), interactive('user', 1)];
  const leaves: [string[], ...Command[]] = [['late'], leave('late'), wake('late')];
  const passed = scriptBy(limits, new ListedTurns(names, entries), ...leaves);
  expect(passed.violations).toEqual([]);
  const both = [own, { ...own, name: 'share', lanes: ['interactive', 'batch'] }];
  const stopped = scriptBy(both, new ListedTurns(names, entries), ...leaves);
  expect(stopped.violations).toHaveLength(1);
});

test('groups that wait together get the same, up to the largest request of each', () => {
  const entries = [1, 2, 3, 4].map((at) => ofGroup('a', `a${at}`, at));
  const turns = new ListedTurns(names, [...entries, ofGroup('b', 'b1', 5)]);
  expect(script(turns, ['a1', 'a2'], leave('a1', 'a2'), wake('a1', 'a2')).violations).toEqual([]);
  expect(script(turns, ['a3'], leave('a3'), wake('a3')).violations).toHaveLength(1);
});

test('a group that joins after the turns of its script waited with nobody', () => {
  const turns = new ListedTurns(
    names,
    [1, 2, 3, 4].map((at) => ofGroup('a', `a${at}`, at)),
  );
  const all = ['a1', 'a2', 'a3'];
  const commands = [leave(...all), join(ofGroup('b', 'b1', 5)), wake(...all)];
  expect(script(turns, all, ...commands)).toEqual({ turns: 3, violations: [] });
});

test('a withdrawn waiter, and one whose replica is dead, are passed by nobody', () => {
  const turns = new ListedTurns(names, [interactive('gone', 0), batch('next', 1)]);
  const result = script(turns, ['next'], leave('next', 'gone'), wake('next'));
  expect(result).toEqual({ turns: 1, violations: [] });
});

test('groups whose lists are made again begin again', () => {
  const entries = [1, 2, 3, 4, 5].map((at) => ofGroup('a', `a${at}`, at));
  const others = [ofGroup('b', 'b1', 5)];
  const turns = new ListedTurns(names, [...entries, ...others]);
  script(turns, ['a1', 'a2'], leave('a1', 'a2'), wake('a1', 'a2'));
  script(turns, [], ['unlink', names.queue], join(...entries.slice(2), ...others));
  expect(script(turns, ['a3'], leave('a3'), wake('a3'))).toEqual({ turns: 1, violations: [] });
});
