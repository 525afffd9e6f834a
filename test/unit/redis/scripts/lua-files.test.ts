import { readFileSync, readdirSync } from 'node:fs';
import { basename } from 'node:path';

import { ALGORITHM_NAMES } from '../../../../src/limiter/kinds/kinds.js';
import { MOST_TIMES_MAXIMUM } from '../../../../src/limiter/memory/approvals.js';
import { IDLE_WINDOWS } from '../../../../src/limiter/memory/limits/window.js';
import { LABELS } from '../../../../src/limiter/request.js';
import { AMEND_REPLY } from '../../../../src/redis/scripts/operations.js';
import { HEAD, VERDICT } from '../../../../src/redis/scripts/check-codec.js';
import { keysToInspect } from '../../../../src/redis/scripts/looks-codec.js';
import { keysToRenew } from '../../../../src/redis/scripts/several-keys.js';
import { loadScript } from '../../../../src/redis/scripts/script-loader.js';
import {
  keysForNewWindow,
  keysInWindow,
  keysOf,
  sharedArguments,
} from '../../../../src/redis/scripts/shared-arguments.js';
import { backoffMillis } from '../../../../src/redis/shared/store-observer.js';
import { KeyNaming } from '../../../../src/redis/shared/key-names.js';
import { CONTACT_GAP, LEASES_UNSETTLED, RENEWAL } from '../../../../src/redis/shared/losses.js';
import { leasesUnsettled } from '../../../../src/redis/waiting/leases.js';
import { MAX_IDS_PER_CALL } from '../../../../src/redis/waiting/withdrawals.js';
import { keyLimits } from '../../../support/limits.js';
import { luaConstant, luaNumber } from '../../../support/lua-constants.js';
import { luaScopes } from '../../../support/lua-scopes.js';
import { SCRIPT_CALLER } from '../../../support/script-caller.js';

describe('the files of lua', () => {
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

  /** The variables of a file and the fragments that it requires as these. */
  function requiredIn(file: string): (readonly [variable: string, fragment: string])[] {
    const lines = textOf(file).matchAll(/^local (\w+) = require(?:_when_called)? '(.*)'$/gm);
    return [...lines].map(([, variable, fragment]) => [variable!, fragment!] as const);
  }

  /** Adds the fragments that a file requires, and those that these require. */
  function addRequired(file: string, found: Set<string>): Set<string> {
    for (const [, fragment] of requiredIn(file)) {
      if (!found.has(fragment)) addRequired(fragment, found.add(fragment));
    }
    return found;
  }

  /** The comment at the top of a file. */
  function headerOf(script: string): string {
    return /^(?:--.*\n)*/.exec(textOf(script))![0];
  }

  /** What Redis has, and what the loader resolves. */
  const GLOBALS = [
    'ARGV', 'KEYS', 'cjson', 'error', 'ipairs', 'math', 'next', 'pairs', 'pcall', 'redis', 'require', 'require_when_called',
    'setmetatable', 'string', 'table', 'tonumber', 'tostring', 'type', 'unpack',
  ]; // prettier-ignore
  /** Lua 5.1 allows a function 200 local variables, and 60 of outer functions. */
  const MOST_LOCALS = 120;
  const MOST_UPVALUES = 40;

  const scripts = luaFilesIn('.');
  const fragments = ['lib', 'limits', 'queue'].flatMap((folder) =>
    luaFilesIn(`${folder}/`).map((name) => `${folder}/${name}`),
  );

  const required = new Set(scripts.flatMap((script) => [...addRequired(script, new Set())]));

  test('name no kind of limits, except that which reads the rules', () => {
    const names = new RegExp(`'(?:${[...ALGORITHM_NAMES, 'calendar'].join('|')})'`);
    const naming = [...scripts, ...fragments].filter((file) => names.test(textOf(file)));
    expect(naming).toEqual(['lib/limits-text']);
  });

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
      for (const [variable, fragment] of requiredIn(file))
        expect(variable).toBe(variableOf(fragment));
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
      expect(Math.max(...functions.map(({ upvalues }) => upvalues.size))).toBeLessThan(
        MOST_UPVALUES,
      );
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
      expect([...required]).toContain(fragment);
    });

    test('takes keys and arguments as parameters', () => {
      expect(textOf(fragment)).not.toMatch(/\b(KEYS|ARGV)\b/);
    });
  });
});

describe('constants of lua and of the source', () => {
  const names = new KeyNaming('p:').namesOf('key');
  const leased = { names, places: 1, wakeNumber: 1 } as const;
  const limits = keyLimits({ windowMillis: 1000, maxRequests: 1, maxRequestsInQueue: 1 });
  const shared = sharedArguments({ ...SCRIPT_CALLER, limitsOf: () => limits }, names, limits, 0);

  type Row = [file: string, name: string, value: number | string];

  /** Rows of constants, with their names as Lua spells them. */
  function rowsOf(file: string, constants: Readonly<Record<string, number>>): Row[] {
    return Object.entries(constants).map(([name, value]) => [
      file,
      name.replaceAll(/[A-Z]/g, '_$&').toUpperCase(),
      value,
    ]);
  }

  test.each<Row>([
    ['limits/window', 'IDLE_WINDOWS', IDLE_WINDOWS],
    ['amend', 'MOST_TIMES_MAXIMUM', MOST_TIMES_MAXIMUM],
    ['lib/recovery', 'CONTACT_GAP', CONTACT_GAP],
    ['lib/instance', 'LEASES_UNSETTLED', LEASES_UNSETTLED],
    ['lib/verdicts', 'HEAD', HEAD],
    ...rowsOf('lib/verdicts', VERDICT),
    ...rowsOf('amend', AMEND_REPLY),
    ['lib/calls', 'FIRST_OWN', shared.length + 1],
    ['lib/key-names', 'IN_WINDOW', keysInWindow(names).length],
    ['lib/key-names', 'FOR_NEW_WINDOW', keysForNewWindow(names).length],
    ['lib/key-names', 'PER_INSTANCE', keysOf(names).length],
    ['renew', 'NAMES_PER_KEY', keysToRenew(leased).length],
    ['inspect', 'NAMES_PER_KEY', keysToInspect(names).length],
  ])('lua/%s.lua has the %s of the source: %s', (file, name, value) => {
    expect(luaConstant(file, name)).toBe(value);
  });

  test('requests have the same labels', () => {
    const [, labels] = /^requests\.LABELS = \{ (.*) \}$/m.exec(loadScript('check').text)!;
    expect(labels).toBe(LABELS.map((label) => `'${label}'`).join(', '));
  });

  test('a withdrawal has no more ids than a script passes to a command at a time', () => {
    expect(MAX_IDS_PER_CALL).toBeLessThanOrEqual(luaNumber('lib/chunks', 'SIZE'));
  });

  test('a key that Redis lost recovers for longer than the longest wait', () => {
    const longestWait = backoffMillis(1000, 1);
    // The same time again is for the call itself, and for a late replica.
    expect(luaNumber('lib/recovery', 'RECOVERY_MILLIS')).toBeGreaterThanOrEqual(2 * longestWait);
  });

  test('a lease that a living replica has just renewed shows that Redis is up', () => {
    const leastLeft = luaNumber('lib/recovery', 'LEASE_PART_LEFT');

    expect(leastLeft).toBeGreaterThan(RENEWAL);
    expect(leastLeft).toBeLessThan(1 - RENEWAL);
    expect(CONTACT_GAP).toBeLessThan(1 - leastLeft);
  });

  test('a key is settled again after 10 to 15 leases', () => {
    expect([leasesUnsettled(0), leasesUnsettled(1)]).toEqual([10, LEASES_UNSETTLED]);
  });
});

/** The end of each script, which calls the function that it defines. */
const CALL = '\nreturn run(KEYS, ARGV)\n';

/** A fragment whose text is its name. */
function written(name: string): string {
  return `local ${name} = (function()\n${name}\nend)()\n`;
}

describe('loadScript', () => {
  test.each([
    ["  local part = require 'lib/part'", 'an indented line'],
    ["-- local part = require 'lib/part'", 'a comment'],
    ["x = require 'lib/part'", 'no local variable'],
    ["local part = require 'lib/part'.part", 'a part of it'],
    ["local part = require ''", 'no name'],
  ])('leaves %j (%s) as it is', (line) => {
    expect(loadScript('main', { main: line, 'lib/part': 'part' }).text).toBe(line + CALL);
  });

  test.each([
    ['requires itself', { main: "local main = require 'main'" }, 'main > main'],
    [
      'is required by what it requires',
      {
        main: "local a = require 'a'",
        a: "local b = require 'b'",
        b: "local main = require 'main'",
      },
      'main > a > b > main',
    ],
    [
      'is in a cycle that the script itself is not in',
      { main: "local a = require 'a'", a: "local b = require 'b'", b: "local a = require 'a'" },
      'main > a > b > a',
    ],
  ])('rejects a fragment that %s, and names the path', (_case, texts, path) => {
    expect(() => loadScript('main', texts)).toThrow(new Error(`lua require cycle: ${path}`));
  });

  describe('a fragment that is required when it is called', () => {
    const texts = {
      main: "local part = require_when_called 'lib/part'\nlocal a = require 'a'\nmain",
      a: 'a',
      'lib/part': "local a = require 'a'\nlocal b = require 'b'\npart",
      b: 'b',
    };

    test('is defined by the first call in a script, with what it alone requires', () => {
      expect(loadScript('main', texts).text).toBe(
        written('a') +
          [
            'local part',
            'part = setmetatable({}, { __index = function(_, name)',
            'part = (function()',
            `${written('b')}part`,
            'end)()',
            'return part[name]',
            'end })',
            'main',
          ].join('\n') +
          CALL,
      );
    });
  });

  describe('the library', () => {
    const MAIN = { main: 'local function run() end' };

    test('has another name if its text or its flags are others', () => {
      const names = [
        loadScript('main', MAIN),
        loadScript('main', { main: 'local function run() return 1 end' }),
        loadScript('main', MAIN, ['no-writes']),
      ].map(({ library }) => library.name);
      expect(new Set(names).size).toBe(names.length);
    });
  });
});
