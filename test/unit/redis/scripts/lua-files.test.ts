import { readdirSync, readFileSync } from 'node:fs';

import { loadScript } from '../../../../src/redis/scripts/script-loader.js';

const LUA_FOLDER = new URL('../../../../lua/', import.meta.url);

function luaFilesIn(folder: string): string[] {
  return readdirSync(new URL(folder, LUA_FOLDER))
    .filter((file) => file.endsWith('.lua'))
    .map((file) => file.slice(0, -'.lua'.length));
}

/** The comment at the top of a file. */
function headerOf(script: string): string {
  const lines = readFileSync(new URL(`${script}.lua`, LUA_FOLDER), 'utf8').split('\n');
  const end = lines.findIndex((line) => !line.startsWith('--') || line.startsWith('--@include'));
  return lines.slice(0, end).join('\n');
}

const scripts = luaFilesIn('.');
const fragments = luaFilesIn('lib/');

test('there is one script for each operation', () => {
  const operations = [
    'amend',
    'check',
    'examine',
    'inspect',
    'pause',
    'release',
    'renew',
    'report',
    'settle',
    'withdraw',
  ];
  expect(scripts.sort()).toEqual(operations);
});

describe.each(scripts)('%s.lua', (script) => {
  test('loads with nothing left to include', () => {
    const { text } = loadScript(script);
    expect(text).toContain('redis.call');
    expect(text).not.toMatch(/^--@include/m);
  });

  test('is a library whose functions are all defined when it is loaded', () => {
    const { text } = loadScript(script).library;
    expect(text).not.toMatch(/^--@include/m);
    expect(text).not.toMatch(/^local define_/m);
  });

  test('starts with a header that says what it is for and names KEYS, ARGV and Reply', () => {
    const header = headerOf(script);
    expect(header).toMatch(/^-- [A-Z]/);
    for (const part of ['KEYS ', 'ARGV ', 'Reply']) {
      expect(header).toMatch(new RegExp(`^-- ${part} *\\S`, 'm'));
    }
  });

  test('names in its header every position of KEYS that it uses', () => {
    const named = /^-- KEYS +(.*)$/m
      .exec(headerOf(script))![1]!
      .match(/\d+(?= \w)/g)!
      .map(Number);
    const text = readFileSync(new URL(`${script}.lua`, LUA_FOLDER), 'utf8');
    const used = [...text.matchAll(/KEYS\[(\d+)\]/g)].map((match) => Number(match[1]));
    expect(named.length).toBeGreaterThan(0);
    expect(named).toEqual(expect.arrayContaining(used));
  });
});

describe.each(fragments)('lib/%s.lua', (fragment) => {
  test('is included by a script', () => {
    const marker = '-- stands in for the fragment';
    const users = scripts.filter((script) =>
      loadScript(script, { [`lib/${fragment}`]: marker }).text.includes(marker),
    );
    expect(users).not.toEqual([]);
  });

  test('takes keys and arguments as parameters', () => {
    const text = readFileSync(new URL(`lib/${fragment}.lua`, LUA_FOLDER), 'utf8');
    expect(text).not.toMatch(/\b(KEYS|ARGV)\b/);
  });
});
