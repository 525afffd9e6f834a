import { RecentAnswers } from '../../../src/common/collections.js';

let found: string[];
let answers: RecentAnswers<{ readonly key: string }>;
beforeEach(() => {
  found = [];
  answers = new RecentAnswers((key) => {
    found.push(key);
    return { key };
  }, 2);
});

function ask(...keys: string[]): void {
  for (const key of keys) expect(answers.of(key)).toEqual({ key });
}

test('an answer is found once, and then remembered', () => {
  ask('a', 'a', 'b', 'a', 'b');
  expect(found).toEqual(['a', 'b']);
  expect(answers.of('a')).toBe(answers.of('a'));
});

test('keys that are asked for stay remembered, whatever other keys come in between', () => {
  ask('a', 'b', 'c', 'a', 'd', 'a', 'e', 'a', 'f', 'a');
  expect(found).toEqual(['a', 'b', 'c', 'd', 'e', 'f']);
});

test('keys that are not asked for are forgotten after two more generations', () => {
  ask('a', 'b', 'c', 'd', 'e', 'a');
  expect(found).toEqual(['a', 'b', 'c', 'd', 'e', 'a']);
});

test('names of prototypes are keys like any other', () => {
  ask('__proto__', 'constructor', '__proto__');
  expect(found).toEqual(['__proto__', 'constructor']);
});
