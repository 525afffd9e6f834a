import { COMMAND_NAMES, COMMANDS, type CommandName } from './commands.js';
import { OPTIONS, type OptionName } from './options.js';
import { PROGRAM } from './program.js';

/** The columns of what the text on the right explains. */
const LEFT_COLUMNS = 24;

const USES_ENVIRONMENT = [
  'Without --url: SLUICE_URL, with commas between several addresses, else http://localhost:8080.',
  'Without --token-file: the file in SLUICE_TOKEN_FILE, else the token in SLUICE_TOKEN.',
  'Durations are such as 500ms, 30s, 10m, 2h or 1d.',
];
const CODES = [
  'Exit codes: 0 approved (of run: as of CMD), 1 no such approval, 64 wrong command line or request,',
  '69 no decision, 70 the hold was lost, 74 no output, 75 denied, 126 and 127 CMD can not be started,',
  '128+n ended by signal n.',
];

/** The lines that `--help` prints. @param about a command, or all */
export function helpText(about: CommandName | undefined): readonly string[] {
  return about === undefined ? ofAll() : ofCommand(about);
}

function ofAll(): string[] {
  const usages = COMMAND_NAMES.map((name) => COMMANDS[name]).flatMap(({ usage, summary }) => [
    `  ${PROGRAM} ${usage}`,
    `      ${summary}`,
  ]);
  return [
    'Usage:',
    ...usages,
    `  ${PROGRAM} --help | COMMAND --help | --version`,
    '',
    ...USES_ENVIRONMENT,
    '',
    ...CODES,
  ];
}

function ofCommand(name: CommandName): string[] {
  const { usage, summary, options } = COMMANDS[name];
  const rows = options.map((option) => row(option, OPTIONS[option].text));
  return [
    `Usage: ${PROGRAM} ${usage}`,
    '',
    `${summary[0]?.toUpperCase() ?? ''}${summary.slice(1)}.`,
    ...(rows.length === 0 ? [] : ['', 'Options:', ...rows, '', ...USES_ENVIRONMENT]),
  ];
}

function row(option: OptionName, text: string): string {
  return `  ${formOf(option).padEnd(LEFT_COLUMNS)}${text}`;
}

/** An option as it is written, with the name of its value. */
export function formOf(option: OptionName): string {
  const form = OPTIONS[option];
  return 'takes' in form ? `--${option} ${form.takes}` : `--${option}`;
}
