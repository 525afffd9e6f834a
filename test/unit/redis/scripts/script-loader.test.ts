import { loadScript } from '../../../../src/redis/scripts/script-loader.js';

/** The end of each script, which calls the function that it defines. */
const CALL = '\nreturn run(KEYS, ARGV)\n';

/** A fragment whose text is its name. */
function written(name: string): string {
  return `local ${name} = (function()\n${name}\nend)()\n`;
}

describe('loadScript', () => {
  test('puts a fragment before what requires it, as a variable', () => {
    const { name, text } = loadScript('main', {
      main: "first\nlocal part = require 'lib/part'\nlast\n",
      'lib/part': 'one\ntwo',
    });
    expect(name).toBe('main');
    expect(text).toBe(`local part = (function()\none\ntwo\nend)()\nfirst\nlast\n${CALL}`);
  });

  test('writes fragments depth first', () => {
    const { text } = loadScript('main', {
      main: "local a = require 'a'\nlocal b = require 'b'\nmain",
      a: "local deep = require 'deep'\na",
      b: 'b',
      deep: 'deep',
    });
    expect(text).toBe(`${written('deep')}${written('a')}${written('b')}main${CALL}`);
  });

  test('writes a fragment once', () => {
    const { text } = loadScript('main', {
      main: "local a = require 'a'\nlocal shared = require 'shared'\nlocal b = require 'b'\nmain",
      a: "local shared = require 'shared'\na",
      b: "local shared = require 'shared'\nb",
      shared: 'shared',
    });
    expect(text).toBe(`${written('shared')}${written('a')}${written('b')}main${CALL}`);
  });

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

  test('names the file of a missing fragment', () => {
    expect(() => loadScript('main', { main: "local none = require 'lib/none'" })).toThrow(
      /ENOENT.*lib\/none\.lua/,
    );
  });

  test('reads a file if there is no replacement', () => {
    const original = loadScript('inspect').text;
    const replaced = loadScript('inspect', { 'lib/now': '-- another clock' }).text;
    expect(original).toContain("redis.call('TIME')");
    expect(replaced).not.toContain("redis.call('TIME')");
    expect(replaced).toContain('-- another clock');
    expect(replaced).toContain('key_limits.roll_further');
  });

  test('knows a script by the SHA-1 that Redis gives it', () => {
    // By sha1sum.
    const { text, sha1 } = loadScript('main', { main: 'local function run() end' });
    expect(text).toBe('local function run() end\nreturn run(KEYS, ARGV)\n');
    expect(sha1).toBe('5b6fb5efd611a645135f8064f3213a72a1598c3b');
  });

  test('computes the SHA-1 of the expanded text, as UTF-8', () => {
    const whole = loadScript('whole', {
      whole: 'local note = (function()\n-- ü\nend)()\nreturn 1',
    });
    const parts = loadScript('parts', {
      parts: "local note = require 'note'\nreturn 1",
      note: '-- ü',
    });
    expect(parts.sha1).toBe(whole.sha1);
    expect(parts.text).toBe(whole.text);
    expect(loadScript('other', { other: '-- u\nreturn 1' }).sha1).not.toBe(whole.sha1);
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

    test('is defined with the library', () => {
      const { text } = loadScript('main', texts).library;
      const part = `local part = (function()\n${written('b')}part\nend)()\n`;
      expect(text).toContain(`\n${written('a')}${part}main\n`);
    });
  });

  describe('the library', () => {
    const MAIN = { main: 'local function run() end' };

    test('has one function, which has its name', () => {
      const { name, text } = loadScript('main', MAIN).library;
      expect(name).toMatch(/^sluice_main_[\da-f]{16}$/);
      expect(text).toBe(`#!lua name=${name}
local function run() end
redis.register_function{
  function_name = '${name}', callback = run, flags = {  }
}
`);
    });

    test('has another name if its text or its flags are others', () => {
      const names = [
        loadScript('main', MAIN),
        loadScript('main', { main: 'local function run() return 1 end' }),
        loadScript('main', MAIN, ['no-writes']),
      ].map(({ library }) => library.name);
      expect(new Set(names).size).toBe(names.length);
    });

    test('gives its flags to the function', () => {
      const { text } = loadScript('main', MAIN, ['no-writes']).library;
      expect(text).toContain("flags = { 'no-writes' }");
    });
  });
});
