import { loadScript } from '../../../../src/redis/scripts/script-loader.js';

describe('loadScript', () => {
  test('puts a fragment in the place of the line that includes it', () => {
    const { name, text } = loadScript('main', {
      main: 'first\n--@include lib/part\nlast\n',
      'lib/part': 'one\ntwo',
    });
    expect(name).toBe('main');
    expect(text).toBe('first\none\ntwo\nlast\n');
  });

  test('expands fragments depth first', () => {
    const { text } = loadScript('main', {
      main: '--@include a\n--@include b\nmain',
      a: '--@include deep\na',
      b: 'b',
      deep: 'deep',
    });
    expect(text).toBe('deep\na\nb\nmain');
  });

  test('expands a fragment once, where it is asked for first', () => {
    const { text } = loadScript('main', {
      main: '--@include a\n--@include shared\n--@include b\nmain',
      a: '--@include shared\na',
      b: '--@include shared\nb',
      shared: 'shared',
    });
    expect(text).toBe('shared\na\n\n\nb\nmain');
  });

  test.each([
    ['  --@include lib/part', 'an indented line'],
    ['-- @include lib/part', 'a comment with a space'],
    ['x = 1 --@include lib/part', 'the end of a line of code'],
    ['--@include lib/part lib/other', 'two names'],
    ['--@include', 'no name'],
  ])('takes %j (%s) for no include', (line) => {
    expect(loadScript('main', { main: line, 'lib/part': 'expanded' }).text).toBe(line);
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
    // From the documentation: https://redis.io/docs/latest/commands/evalsha/
    const { sha1 } = loadScript('main', { main: "return 'Immabe a cached script'" });
    expect(sha1).toBe('c664a3bf70bd1d45c4284ffebb65a6f2299bfc9f');
  });

  test('computes the SHA-1 of the expanded text, as UTF-8', () => {
    const whole = loadScript('whole', { whole: '-- ü\nreturn 1' });
    const parts = loadScript('parts', { parts: '--@include note\nreturn 1', note: '-- ü' });
    expect(parts.sha1).toBe(whole.sha1);
    expect(parts.text).toBe(whole.text);
    expect(loadScript('other', { other: '-- u\nreturn 1' }).sha1).not.toBe(whole.sha1);
  });
});
