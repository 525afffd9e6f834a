import { parseArgs } from 'node:util';

import { CommandLineError, PROGRAM } from './errors.js';
import { isOption, type OptionName, OPTIONS, takesValue, valueOf, type Values } from './options.js';

export type CommandName = 'run' | 'check' | 'release' | 'peek' | 'pause' | 'top' | 'completion';

interface CommandForm {
  /** The arguments that it needs. */
  readonly operands: readonly string[];
  /** An argument that it may have besides. */
  readonly optional?: string;
  readonly options: readonly OptionName[];
  /** Whether a command line follows after `--`. */
  readonly runs?: true;
  readonly usage: string;
  readonly summary: string;
}

/** The options of all commands that ask Sluice. */
const CONNECTION: readonly OptionName[] = ['url', 'token-file', 'json'];
const PLACE: readonly OptionName[] = ['hits', 'lane', 'group'];
const ASKING: readonly OptionName[] = [
  ...(['max', 'window', 'max-queue'] as const),
  ...PLACE,
  ...(['hold', 'max-wait', 'holder'] as const),
];

export const COMMANDS: Readonly<Record<CommandName, CommandForm>> = {
  run: {
    operands: ['KEY'],
    runs: true,
    options: [...ASKING, 'no-wait', 'grace', 'quiet', ...CONNECTION],
    usage: 'run KEY [options] -- CMD [ARG...]',
    summary: 'runs CMD while it holds an approval',
  },
  check: {
    operands: ['KEY'],
    options: [...ASKING, 'wait', 'quiet', ...CONNECTION],
    usage: 'check KEY [options]',
    summary: 'prints the request id of an approval',
  },
  release: {
    operands: ['KEY', 'ID'],
    options: CONNECTION,
    usage: 'release KEY ID [options]',
    summary: 'gives an approval back',
  },
  peek: {
    operands: ['KEY'],
    options: [...PLACE, ...CONNECTION],
    usage: 'peek KEY [options]',
    summary: 'says what a check would get now; changes nothing',
  },
  pause: {
    operands: ['KEY'],
    optional: 'DURATION',
    options: ['group', 'end', ...CONNECTION],
    usage: 'pause KEY DURATION|--end [options]',
    summary: 'approves no check of KEY for a time',
  },
  top: {
    operands: [],
    options: ['interval', 'once', ...CONNECTION],
    usage: 'top [options]',
    summary: 'shows keys that are paused, denied or waited for, live',
  },
  completion: {
    operands: ['SHELL'],
    options: [],
    usage: 'completion bash|zsh|fish',
    summary: 'prints a script for the shell',
  },
};

export const COMMAND_NAMES: readonly CommandName[] = Object.keys(COMMANDS) as CommandName[];

export interface Invocation {
  readonly command: CommandName;
  /** As many as the command needs, and the optional one if it was given. */
  readonly operands: readonly string[];
  readonly values: Values;
  /** What follows `--` for `run`. */
  readonly commandLine: readonly string[];
}

export type Asked =
  | Invocation
  | { readonly command: 'help'; readonly about: CommandName | undefined }
  | { readonly command: 'version' };

type Token = NonNullable<ReturnType<typeof parseArgs>['tokens']>[number];
type OptionToken = Extract<Token, { kind: 'option' }>;

/** @throws CommandLineError for anything that no command takes */
export function parseCommandLine(args: readonly string[]): Asked {
  const { tokens } = parseArgs({
    args: [...args],
    options: {
      help: { type: 'boolean', short: 'h' },
      version: { type: 'boolean' },
      ...Object.fromEntries(Object.keys(OPTIONS).map((name) => [name, typeOf(name)])),
    },
    strict: false,
    tokens: true,
  });
  const terminator = tokens.findIndex(({ kind }) => kind === 'option-terminator');
  const isBefore = (_: Token, i: number): boolean => terminator === -1 || i < terminator;
  const options = tokens.filter((token) => token.kind === 'option');
  const [name, ...operands] = textsOf(tokens.filter(isBefore));
  const rest = textsOf(terminator === -1 ? [] : tokens.slice(terminator));
  const command = name === undefined ? undefined : commandOf(name);
  if (options.some((option) => option.name === 'help')) return { command: 'help', about: command };
  if (options.some((option) => option.name === 'version')) return { command: 'version' };
  const values = valuesOf(command, options);
  if (command === undefined) throw new CommandLineError('a command is missing');
  const { runs } = COMMANDS[command];
  const invocation = {
    command,
    values,
    ...(runs
      ? { operands, commandLine: rest }
      : { operands: [...operands, ...rest], commandLine: [] }),
  };
  demandComplete(invocation);
  return invocation;
}

function typeOf(name: string): { type: 'string' | 'boolean' } {
  return { type: isOption(name) && takesValue(name) ? 'string' : 'boolean' };
}

function textsOf(tokens: readonly Token[]): string[] {
  return tokens.flatMap((token) => (token.kind === 'positional' ? [token.value] : []));
}

function commandOf(name: string): CommandName {
  if (Object.hasOwn(COMMANDS, name)) return name as CommandName;
  throw new CommandLineError(`unknown command ${name}`);
}

function valuesOf(command: CommandName | undefined, options: readonly OptionToken[]): Values {
  const values: Partial<Record<OptionName, unknown>> = {};
  for (const { name, rawName, value, inlineValue } of options) {
    const isKnown = isOption(name) && rawName === `--${name}`;
    if (!isKnown || (command && !COMMANDS[command].options.includes(name))) {
      throw new CommandLineError(
        isKnown ? `${command ?? ''} takes no option ${rawName}` : `unknown option ${rawName}`,
      );
    }
    // After `=` a value may begin with `-`.
    const isGiven = value !== undefined && (inlineValue || !value.startsWith('-'));
    if (takesValue(name) && !isGiven) throw new CommandLineError(`${rawName} needs a value`);
    if (!takesValue(name) && value !== undefined) {
      throw new CommandLineError(`${rawName} takes no value`);
    }
    values[name] = valueOf(name, value ?? '', values[name]);
  }
  return values as Values;
}

function demandComplete({ command, operands: given, commandLine }: Invocation): void {
  const { operands, optional, runs } = COMMANDS[command];
  const missing = operands.find((_, i) => (given[i] ?? '') === '');
  if (missing !== undefined) throw new CommandLineError(`${command} needs ${missing}`);
  if (runs && commandLine.length === 0) {
    throw new CommandLineError(`${command} needs CMD after --`);
  }
  const extra = given[operands.length + (optional === undefined ? 0 : 1)];
  if (extra !== undefined) {
    throw new CommandLineError(`unexpected argument ${JSON.stringify(extra)}`);
  }
}

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
  const rows = options.map(
    (option) => `  ${formOf(option).padEnd(LEFT_COLUMNS)}${OPTIONS[option].text}`,
  );
  return [
    `Usage: ${PROGRAM} ${usage}`,
    '',
    `${summary[0]?.toUpperCase() ?? ''}${summary.slice(1)}.`,
    ...(rows.length === 0 ? [] : ['', 'Options:', ...rows, '', ...USES_ENVIRONMENT]),
  ];
}

/** An option as it is written, with the name of its value. */
export function formOf(option: OptionName): string {
  const form = OPTIONS[option];
  return 'takes' in form ? `--${option} ${form.takes}` : `--${option}`;
}
