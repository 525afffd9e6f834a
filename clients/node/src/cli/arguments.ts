import { parseArgs } from 'node:util';

import { COMMANDS, type CommandName, isCommand } from './commands.js';
import { CommandLineError } from './errors.js';
import { isOption, OPTIONS, type OptionName, takesValue, type Values, valueOf } from './options.js';

/** A command as it was asked for. */
export interface Invocation {
  readonly command: CommandName;
  /** As many as the command needs, and the optional one if it was given. */
  readonly operands: readonly string[];
  readonly values: Values;
  /** What follows `--` for `run`. */
  readonly commandLine: readonly string[];
}

/** What the command line asks for. */
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
  if (isCommand(name)) return name;
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
