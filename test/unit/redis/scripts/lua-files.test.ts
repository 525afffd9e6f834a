import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';

import { loadScript } from '../../../../src/redis/scripts/script-loader.js';
import { luaScopes } from '../../../support/lua-scopes.js';

const LUA_FOLDER = new URL('../../../../lua/', import.meta.url);

function luaFilesIn(folder: string): string[] {
  return readdirSync(new URL(folder, LUA_FOLDER))
    .filter((file) => file.endsWith('.lua'))
    .map((file) => file.slice(0, -'.lua'.length));
}

function textOf(file: string): string {
  return readFileSync(new URL(`${file}.lua`, LUA_FOLDER), 'utf8');
}

function variableOf(fragment: string): string {
  return basename(fragment).replaceAll('-', '_');
}

/** The comment at the top of a file. */
function headerOf(script: string): string {
  return /^(?:--.*\n)*/.exec(textOf(script))![0];
}

/** What Redis has, and what the loader resolves. */
const GLOBALS = [
  'ARGV', 'KEYS', 'error', 'ipairs', 'math', 'pairs', 'pcall', 'redis', 'require', 'require_when_called', 'setmetatable', 'string',
  'table', 'tonumber', 'tostring', 'type', 'unpack',
]; // prettier-ignore
/** Lua 5.1 allows a function 200 local variables, and 60 of outer functions. */
const MOST_LOCALS = 120;
const MOST_UPVALUES = 40;

const scripts = luaFilesIn('.');
const fragments = ['lib', 'limits', 'queue'].flatMap((folder) =>
  luaFilesIn(`${folder}/`).map((name) => `${folder}/${name}`),
);

describe.each([...scripts, ...fragments])('%s.lua', (file) => {
  const { functions, globals, hiding } = luaScopes(textOf(file));

  test('uses no name that it does not declare or require', () => {
    expect([...globals].filter((name) => !GLOBALS.includes(name))).toEqual([]);
  });

  test('uses each name that it declares or requires', () => {
    const [{ locals }] = functions as [(typeof functions)[number]];
    const unused = locals.filter(({ name, isUsed }) => !isUsed && name !== 'run');
    expect(unused.map(({ name }) => name)).toEqual([]);
  });

  test('calls what it requires by its name', () => {
    const required = textOf(file).matchAll(/^local (\w+) = require(?:_when_called)? '(.*)'$/gm);
    for (const [, variable, fragment] of required) expect(variable).toBe(variableOf(fragment!));
  });

  test('gives no name two meanings', () => {
    expect(hiding.map(({ name, line }) => `${name} in line ${line}`)).toEqual([]);
  });
});

describe.each(scripts)('%s.lua', (script) => {
  const { text, library } = loadScript(script);

  test.each([
    ['EVALSHA', text],
    ['a library', library.text.replace(/^#!.*/, '')],
  ])('is far from the limits of Lua, for %s', (_, assembled) => {
    const { functions, globals } = luaScopes(assembled);
    expect(assembled).toContain('redis.call');
    expect(
      [...globals].filter((name) => name.startsWith('require') || !GLOBALS.includes(name)),
    ).toEqual([]);
    expect(Math.max(...functions.map(({ locals }) => locals.length))).toBeLessThan(MOST_LOCALS);
    expect(Math.max(...functions.map(({ upvalues }) => upvalues.size))).toBeLessThan(MOST_UPVALUES);
  });

  test('is a library whose functions are all defined when it is loaded', () => {
    expect(library.text).not.toContain('__index = function');
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
    const used = [...textOf(script).matchAll(/KEYS\[(\d+)\]/g)].map((match) => Number(match[1]));
    expect(named.length).toBeGreaterThan(0);
    expect(named).toEqual(expect.arrayContaining(used));
  });
});

describe.each(fragments)('%s.lua', (fragment) => {
  test('declares one name, which is its own', () => {
    const lines = textOf(fragment).trimEnd().split('\n');
    expect(lines.at(-1)).toBe(`return ${variableOf(fragment)}`);
  });

  test('is required by a script', () => {
    const marker = '-- stands in for the fragment';
    const users = scripts.filter((script) =>
      loadScript(script, { [fragment]: marker }).text.includes(marker),
    );
    expect(users).not.toEqual([]);
  });

  test('takes keys and arguments as parameters', () => {
    expect(textOf(fragment)).not.toMatch(/\b(KEYS|ARGV)\b/);
  });
});
