import { loadScript } from '../../../../src/redis/scripts/script-loader.js';

/** The end of each script, which calls the function that it defines. */
const CALL = '\nreturn run(KEYS, ARGV)\n';

describe('loadScript', () => {
  test('puts a fragment in the place of the line that includes it', () => {
    const { name, text } = loadScript('main', {
      main: 'first\n--@include lib/part\nlast\n',
      'lib/part': 'one\ntwo',
    });
    expect(name).toBe('main');
    expect(text).toBe(`first\none\ntwo\nlast\n${CALL}`);
  });

  test('expands fragments depth first', () => {
    const { text } = loadScript('main', {
      main: '--@include a\n--@include b\nmain',
      a: '--@include deep\na',
      b: 'b',
      deep: 'deep',
    });
    expect(text).toBe(`deep\na\nb\nmain${CALL}`);
  });

  test('expands a fragment once, where it is asked for first', () => {
    const { text } = loadScript('main', {
      main: '--@include a\n--@include shared\n--@include b\nmain',
      a: '--@include shared\na',
      b: '--@include shared\nb',
      shared: 'shared',
    });
    expect(text).toBe(`shared\na\n\n\nb\nmain${CALL}`);
  });

  test.each([
    ['  --@include lib/part', 'an indented line'],
    ['-- @include lib/part', 'a comment with a space'],
    ['x = 1 --@include lib/part', 'the end of a line of code'],
    ['--@include lib/part lib/other', 'two names'],
    ['--@include', 'no name'],
  ])('takes %j (%s) for no include', (line) => {
    expect(loadScript('main', { main: line, 'lib/part': 'expanded' }).text).toBe(line + CALL);
  });

  test.each([
    ['includes itself', { main: '--@include main' }, 'main > main'],
    [
      'is included by what it includes',
      { main: '--@include a', a: '--@include b', b: '--@include main' },
      'main > a > b > main',
    ],
    [
      'is in a cycle that the script itself is not in',
      { main: '--@include a', a: '--@include b', b: '--@include a' },
      'main > a > b > a',
    ],
  ])('rejects a fragment that %s, and names the path', (_case, texts, path) => {
    expect(() => loadScript('main', texts)).toThrow(new Error(`lua include cycle: ${path}`));
  });

  test('does not take a fragment that two others include for a cycle', () => {
    const texts = { main: '--@include a\n--@include b', a: '--@include c', b: '--@include c' };
    expect(() => loadScript('main', { ...texts, c: 'c' })).not.toThrow();
  });

  test('names the file of a missing script', () => {
    expect(() => loadScript('no-such-script')).toThrow(/ENOENT.*no-such-script\.lua/);
  });

  test('names the file of a missing fragment', () => {
    expect(() => loadScript('main', { main: '--@include lib/none' })).toThrow(
      /ENOENT.*lib\/none\.lua/,
    );
  });

  test('reads a file if there is no replacement', () => {
    const original = loadScript('inspect').text;
    const replaced = loadScript('inspect', { 'lib/now': '-- another clock' }).text;
    expect(original).toContain("redis.call('TIME')");
    expect(replaced).not.toContain("redis.call('TIME')");
    expect(replaced).toContain('-- another clock');
    expect(replaced).toContain('roll_window');
  });

  test('knows a script by the SHA-1 that Redis gives it', () => {
    // By sha1sum.
    const { text, sha1 } = loadScript('main', { main: 'local function run() end' });
    expect(text).toBe('local function run() end\nreturn run(KEYS, ARGV)\n');
    expect(sha1).toBe('5b6fb5efd611a645135f8064f3213a72a1598c3b');
  });

  test('computes the SHA-1 of the expanded text, as UTF-8', () => {
    const whole = loadScript('whole', { whole: '-- ü\nreturn 1' });
    const parts = loadScript('parts', { parts: '--@include note\nreturn 1', note: '-- ü' });
    expect(parts.sha1).toBe(whole.sha1);
    expect(parts.text).toBe(whole.text);
    expect(loadScript('other', { other: '-- u\nreturn 1' }).sha1).not.toBe(whole.sha1);
  });

  describe('a fragment of which one function is called', () => {
    const texts = {
      main: '--@include a\n--@include-when-called lib/part part\nmain',
      a: 'a',
      'lib/part': '--@include a\n--@include b\nlocal function part() end',
      b: 'b',
    };

    test('is defined by the first call in a script', () => {
      expect(loadScript('main', texts).text).toBe(
        [
          'a',
          'local define_part',
          'local function part(...)',
          '  part = define_part()',
          '  return part(...)',
          'end',
          'function define_part()',
          '\nb\nlocal function part() end',
          '  return part',
          'end',
          'main',
        ].join('\n') + CALL,
      );
    });

    test('is defined with the library, with local variables of its own', () => {
      const body = [
        'a',
        'local part = (function()',
        '\nb\nlocal function part() end',
        '  return part',
        'end)()',
        'main',
      ].join('\n');
      expect(loadScript('main', texts).library.text).toContain(`\n${body}\n`);
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
