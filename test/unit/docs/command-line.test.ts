import { parseCommandLine } from '../../../src/client/cli/arguments.js';
import { COMMAND_NAMES, COMMANDS } from '../../../src/client/cli/commands.js';
import { EXIT } from '../../../src/client/cli/exit-codes.js';
import { formOf } from '../../../src/client/cli/help.js';
import { OPTIONS, type OptionName } from '../../../src/client/cli/options.js';
import { pages, readPage } from '../../support/docs/pages.js';
import { inBackticks, tableRows } from '../../support/docs/tables.js';

const PAGE = 'docs/command-line.md';

test('the table of commands has each command as its help says it', () => {
  const rows = tableRows(PAGE, ['Command', 'Does']).map(([command]) => inBackticks(command));
  const usages = COMMAND_NAMES.map((name) => COMMANDS[name].usage.replaceAll('|', '\\|'));

  expect(rows).toEqual(usages);
});

test('the table of options has each option, and the commands that take it', () => {
  const rows = tableRows(PAGE, ['Option', 'Of', 'Meaning']);
  const ofAllThatAsk = COMMAND_NAMES.filter((name) => name !== 'completion');

  const documented = rows.map(([option, commands = '']) => {
    const named = [...commands.matchAll(/`(\w+)`/g)].map(([, name]) => name);
    return [inBackticks(option), commands.startsWith('all but') ? ofAllThatAsk : named];
  });
  const taken = (Object.keys(OPTIONS) as OptionName[]).map((option) => [
    formOf(option),
    COMMAND_NAMES.filter((name) => COMMANDS[name].options.includes(option)),
  ]);

  expect(documented.sort()).toEqual(taken.sort());
});

test('the table of exit codes has each code', () => {
  const rows = tableRows(PAGE, ['Code', 'Meaning']).map(([code]) => code);

  expect(rows).toEqual([...Object.values(EXIT).map(String), '128+n']);
});

/** From the program to the end of the simple command. */
const COMMAND_LINE =
  /(?:^|[\s`(])sluice-client ((?:"[^"]*"|'[^']*'|[^\s'"`&|;)#>]+)(?: (?:"[^"]*"|'[^']*'|[^\s'"`&|;)#>]+))*)/gm;
/** In text, a name stands for a value. */
const FORMS = /COMMAND|\[|^is\b/;

test('each command line of a page is right', () => {
  const lines = pages().flatMap((page) =>
    [...readPage(page).matchAll(COMMAND_LINE)]
      .map(([, words = '']) => words)
      .filter(
        (words) => !FORMS.test(words) && COMMAND_NAMES.some((name) => words.startsWith(`${name} `)),
      )
      .map((words) => ({ page, words })),
  );

  const wrong = lines.flatMap(({ page, words }) => {
    const parts = words.match(/"[^"]*"|'[^']*'|\S+/g) ?? [];
    try {
      parseCommandLine(parts.map((part) => part.replaceAll(/["']/g, '')));
      return [];
    } catch (error) {
      return [`${page}: ${words}: ${(error as Error).message}`];
    }
  });
  expect(lines.length).toBeGreaterThan(15);
  expect(wrong).toEqual([]);
});
