import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { CHILD_PATH } from '../../../support/child-environment.js';
import { describeCommandLine, useCommandLine } from '../../../support/client/command-line.js';
import { pages, readPage, ROOT } from '../../../support/docs/pages.js';
import { inBackticks, tableRows } from '../../../support/docs/tables.js';
import { extent } from '../../../support/extent.js';

const runFile = promisify(execFile);

const COMMANDS = [
  'run',
  'check',
  'release',
  'peek',
  'pause',
  'holders',
  'end-hold',
  'top',
  'completion',
];

/** All take the options that say where Sluice is. */
const ASKING = COMMANDS.filter((name) => name !== 'completion');
const PAGE = 'docs/command-line.md';
/** From the program to the end of the simple command. */
const COMMAND_LINE =
  /(?:^|[\s`(])sluice-client ((?:"[^"]*"|'[^']*'|[^\s'"`&|;)#>]+)(?: (?:"[^"]*"|'[^']*'|[^\s'"`&|;)#>]+))*)/gm;
/** In text, a name stands for a value. */
const FORMS = /COMMAND|\[|^is\b/;

/** Command lines, and what is wrong with them. */
const WRONG: readonly (readonly [string, string])[] = [
  ['', 'a command is missing'],
  ['--json', 'a command is missing'],
  ['walk', 'unknown command walk'],
  ['run', 'run needs KEY'],
  ['run -- true', 'run needs KEY'],
  ['run k', 'run needs CMD after --'],
  ['run k --', 'run needs CMD after --'],
  ['run k l -- true', 'unexpected argument "l"'],
  ['check', 'check needs KEY'],
  ['check --', 'check needs KEY'],
  ['check k l', 'unexpected argument "l"'],
  ['check k -- --hits', 'unexpected argument "--hits"'],
  ['release k', 'release needs ID'],
  ['pause k', 'pause needs DURATION or --end'],
  ['pause k 1m --end', 'pause needs DURATION or --end'],
  ['pause k 1', 'DURATION must be a duration such as 30s, 10m or 2h, not "1"'],
  ['check k --foo', 'unknown option --foo'],
  ['check k -x', 'unknown option -x'],
  ['check k --grace 1s', 'check takes no option --grace'],
  ['check k --max', '--max needs a value'],
  ['check k --lane --wait', '--lane needs a value'],
  ['check k --url=', '--url needs a value'],
  ['check k --json=yes', '--json takes no value'],
  ['check k --max x', '--max must be a whole number, not "x"'],
  ['check k --max=-1', '--max must be a whole number, not "-1"'],
  ['check k --hold 10', '--hold must be a duration such as 30s, 10m or 2h, not "10"'],
  ['check k --hold 1.5h', '--hold must be a duration such as 30s, 10m or 2h, not "1.5h"'],
  [`check k --group ${'g'.repeat(70)}`, '--group must be 1 to 64 bytes of UTF-8, not 70'],
  ['check k --holder=', '--holder must be 1 to 64 bytes of UTF-8, not 0'],
  [
    'check k --url localhost:1',
    'url must be an address such as http://localhost:8080, not localhost:1',
  ],
  [
    'top --url localhost:1',
    'url must be an address such as http://localhost:8080, not localhost:1',
  ],
  ['top k', 'unexpected argument "k"'],
  ['top --interval 0s', '--interval must be above 0'],
  ['completion', 'completion needs SHELL'],
  ['completion csh', 'completion takes bash, zsh or fish, not "csh"'],
  ['holders', 'holders needs KEY'],
  ['end-hold k', 'end-hold needs HANDLE'],
  ['run k --timeout 0s -- true', '--timeout must be above 0'],
  ['run k --timeout 5 -- true', '--timeout must be a duration such as 30s, 10m or 2h, not "5"'],
];

describeCommandLine('sluice-client', () => {
  const start = useCommandLine();
  const ended = async (...args: string[]) => {
    const command = start(args);
    const code = await command.ended;
    return { code, stdout: command.stdout, stderr: command.stderr };
  };

  const some = extent(
    WRONG.filter((_, i) => i % 3 === 0),
    WRONG,
  );
  test.each(some)('names what is wrong with: %s', async (line, problem) => {
    expect(await ended(...line.split(' ').filter((word) => word !== ''))).toEqual({
      code: 64,
      stdout: '',
      stderr: `sluice-client: ${problem}; see sluice-client --help\n`,
    });
  });

  test('says what is wrong with a token', async () => {
    const { code, stderr } = await ended('check', 'k', '--token-file', '/no/such/file');

    expect(code).toBe(64);
    expect(stderr).toMatch(/^sluice-client: the token can't be read: .*\/no\/such\/file/);
    expect((await ended('check', 'k', '--token-file', '/dev/null')).stderr).toContain(
      'the token in /dev/null is empty; ',
    );
    const command = start(['check', 'k'], { env: { SLUICE_TOKEN: 'two words' } });
    expect(await command.ended).toBe(64);
    expect(command.stderr).toContain(
      'the token in SLUICE_TOKEN has characters other than visible ASCII; ',
    );
  });

  test('prints its help and its version', async () => {
    const help = await ended('--help');

    expect(help).toMatchObject({ code: 0, stderr: '' });
    for (const name of COMMANDS) {
      expect(help.stdout).toContain(`  sluice-client ${name} `);
      const own = await ended(name, '--help');
      expect(own.code).toBe(0);
      expect(own.stdout).toMatch(new RegExp(`^Usage: sluice-client ${name} `));
    }
    expect((await ended('--version')).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect(await ended('run', 'k', '-h')).toEqual(await ended('run', '--help'));
  });

  test('has the commands and options of its page', async () => {
    const usages = tableRows(PAGE, ['Command', 'Does']).map(([usage]) => inBackticks(usage));
    const rows = tableRows(PAGE, ['Option', 'Of', 'Meaning']);

    const help = await ended('--help');

    const lines = [...help.stdout.matchAll(/^ {2}sluice-client ([a-z].*)$/gm)];
    expect(lines.map(([, usage]) => usage!.replaceAll('|', '\\|'))).toEqual(usages);
    for (const name of ASKING) {
      const { stdout } = await ended(name, '--help');
      const options = [...stdout.matchAll(/^ {2}(--\S+(?: [A-Z]+)?) /gm)].map(([, form]) => form);
      const documented = rows
        .filter(([, of = '']) => of.startsWith('all but') || of.includes(`\`${name}\``))
        .map(([option]) => inBackticks(option));
      expect(options.sort()).toEqual(documented.sort());
    }
  });

  test('has the exit codes of its page', () => {
    const source = readFileSync(join(ROOT, 'clients/go/cmd/sluice-client/output.go'), 'utf8');
    const codes = [...source.matchAll(/^\texit[A-Z]\w+ += (\d+)$/gm)].map(([, code]) => code);

    const rows = tableRows(PAGE, ['Code', 'Meaning']).map(([code]) => code);
    expect(rows).toEqual(['0', ...codes].map((code) => (code === '128' ? '128+n' : code)));
  });

  test('takes each command line of a page', async () => {
    const lines = pages().flatMap((page) =>
      [...readPage(page).matchAll(COMMAND_LINE)]
        .map(([, words = '']) => words)
        .filter(
          (words) => !FORMS.test(words) && ASKING.some((name) => words.startsWith(`${name} `)),
        )
        .map((words) => ({ page, words })),
    );
    expect(lines.length).toBeGreaterThan(15);

    const problems = await Promise.all(
      lines.map(async ({ page, words }) => {
        const parts = words.match(/"[^"]*"|'[^']*'|\S+/g) ?? [];
        const [name = '', ...others] = parts.map((part) => part.replaceAll(/["']/g, ''));
        // An error of a command line is said before one of a token.
        const { stderr } = await ended(name, '--token-file', '/no/such/file', ...others);
        return stderr.includes("the token can't be read") ? [] : [`${page}: ${words}: ${stderr}`];
      }),
    );
    expect(problems.flat()).toEqual([]);
  });

  describe('completion', () => {
    /** What bash offers for the last of these words. */
    const offered = async (...words: string[]): Promise<string[]> => {
      const { stdout: script } = await ended('completion', 'bash');
      const typed = ['sluice-client', ...words].map((word) => `'${word}'`).join(' ');
      const asking = `COMP_WORDS=(${typed}); COMP_CWORD=${words.length}; _sluice_client`;
      const printing = `printf '%s\\n' "\${COMPREPLY[@]}"`;
      const { stdout } = await runFile(
        'bash',
        ['--noprofile', '--norc', '-c', `${script}\n${asking}; ${printing}`],
        { env: { PATH: CHILD_PATH } },
      );
      return [...new Set(stdout.trimEnd().split('\n'))].sort();
    };

    test.each([
      ['commands', ['r'], ['release', 'run']],
      ['options of a command', ['run', 'k', '--ho'], ['--hold', '--holder']],
      ['only options that the command has', ['peek', '--h'], ['--help', '--hits']],
      ['shells', ['completion', 'z'], ['zsh']],
      ['files with a token', ['check', '--token-file', '/dev/nul'], ['/dev/null']],
      ['programs for CMD', ['run', 'k', '--', 'tru'], ['true', 'truncate']],
      ['nothing for a value', ['check', '--max', ''], ['']],
      ['nothing for a KEY', ['check', ''], ['']],
    ])('of bash offers %s', async (_, words, expected) => {
      expect(await offered(...words)).toEqual(expected);
    });

    test.each(['zsh', 'fish'])('of %s knows the commands and options', async (shell) => {
      const { stdout, code } = await ended('completion', shell);

      expect(code).toBe(0);
      for (const name of COMMANDS) expect(stdout).toContain(name);
      for (const option of ['max-wait', 'token-file', 'no-wait', 'grace', 'interval', 'end']) {
        expect(stdout).toContain(option);
      }
    });
  });
});
