import { jest } from '@jest/globals';

import { KeyRights } from '../../../../src/service/callers/key-rights.js';
import { KeyPatterns } from '../../../../src/rules/key-patterns.js';

let matching: jest.SpiedFunction<KeyPatterns['matching']>;
let rights: KeyRights;
beforeEach(() => {
  matching = jest.spyOn(KeyPatterns.prototype, 'matching');
  rights = new KeyRights(
    new Map([
      ['a', ['a.*']],
      ['b', ['b.*', '.b']],
    ]),
  );
});
afterEach(() => {
  jest.restoreAllMocks();
});

const ask = (key: string): boolean[] => ['a', 'b', 'c'].map((name) => rights.allows(name, key));

test('a key is matched only when it is new, for any caller', () => {
  expect([ask('a1'), ask('ab'), ask('none')]).toEqual([
    [true, false, false],
    [true, true, false],
    [false, false, false],
  ]);
  expect(matching).toHaveBeenCalledTimes(3);
  expect(ask('a1')).toEqual([true, false, false]);
  expect(ask('none')).toEqual([false, false, false]);
  expect(matching).toHaveBeenCalledTimes(3);
});

test('a key that is too long is not remembered', () => {
  const key = 'a'.repeat(513);
  expect([ask(key), ask(key)]).toEqual([
    [true, false, false],
    [true, false, false],
  ]);
  expect(matching).toHaveBeenCalledTimes(6);
});
