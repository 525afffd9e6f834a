import { parseArgs } from 'node:util';

import { inOneLine, nearestName, packageVersion } from '../common/texts.js';
import { parseSettings, settingsSchema } from '../config/settings.js';
import type { RulesCommand } from './rules-command.js';

const OPTIONS = {
  'check-config': { type: 'string' },
  explain: { type: 'string' },
  group: { type: 'string' },
  version: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** The most letters of an option that may be wrong in a suggestion. */
const MAX_MISTAKES = 2;

export const USAGE = `Usage: node dist/main.js [options], or npm start -- [options]
       node dist/main.js import envoy-ratelimit FILE...

Without options the service starts.

Commands:
  import envoy-ratelimit FILE...
                       print a rules file with the limits of configurations of
                       github.com/envoyproxy/ratelimit

Options:
  --check-config FILE  check a rules file; exit code 1 if it is invalid
  --explain KEY        show which rules apply to a key, and the result;
                       the rules are those of CONFIG_FILE, or of --check-config
  --group NAME         with --explain, also the limits of a group of the key
  --version            print the version
  -h, --help           print this text`;

const IMPORT = 'import';
const ENVOY_RATELIMIT = 'envoy-ratelimit';

export type Command =
  | { readonly name: 'serve' }
  | { readonly name: 'help' }
  | { readonly name: 'version' }
  | ({ readonly name: 'rules' } & RulesCommand)
  | { readonly name: 'import'; readonly files: readonly string[] };

/** A command line that names no command. */
export class CommandLineError extends Error {
  override readonly name = 'CommandLineError';

  constructor(problem: string) {
    super(`${inOneLine(problem)}\n\n${USAGE}`);
  }
}

/** @throws CommandLineError for an unknown option or command, or one without its value, and for any other argument */
export function parseCommandLine(args: readonly string[]): Command {
  const { values, positionals, tokens } = parseArgs({
    args: [...args],
    options: OPTIONS,
    allowPositionals: true,
    strict: false,
    tokens: true,
  });
  const [first] = tokens;
  const isImport = first?.kind === 'positional' && first.value === IMPORT;
  for (const token of tokens) {
    if (token.kind === 'positional' && !isImport) {
      throw new CommandLineError(`unexpected argument ${JSON.stringify(token.value)}`);
    }
    if (token.kind === 'option') checkOption(token);
  }
  if (values.help === true) return { name: 'help' };
  if (values.version === true) return { name: 'version' };
  if (isImport) return importOf(positionals.slice(1), Object.keys(values));
  const [file, key] = [textOf(values['check-config']), textOf(values.explain)];
  const group = textOf(values.group);
  if (group !== undefined && key === undefined)
    throw new CommandLineError('--group needs --explain');
  if (file === undefined && key === undefined) return { name: 'serve' };
  return { name: 'rules', file, key, group };
}

function importOf([format, ...files]: readonly string[], [option]: readonly string[]): Command {
  if (option !== undefined) throw new CommandLineError(`${IMPORT} takes no option --${option}`);
  if (format !== ENVOY_RATELIMIT) {
    const given = format === undefined ? 'nothing' : JSON.stringify(format);
    throw new CommandLineError(`${IMPORT} takes ${ENVOY_RATELIMIT}, not ${given}`);
  }
  if (files.length === 0) throw new CommandLineError(`${IMPORT} ${format} needs a file`);
  return { name: IMPORT, files };
}

type Token = NonNullable<ReturnType<typeof parseArgs>['tokens']>[number];
type OptionToken = Extract<Token, { kind: 'option' }>;

function checkOption({ name, rawName, value, inlineValue }: OptionToken): void {
  if (!isOption(name)) {
    const nearest = nearestName(name, Object.keys(OPTIONS), MAX_MISTAKES);
    const hint = nearest === undefined ? '' : `; did you mean --${nearest}?`;
    throw new CommandLineError(`unknown option ${rawName}${hint}`);
  }
  // After `=` a value may begin with `-`.
  const isGiven = value !== undefined && (inlineValue || !value.startsWith('-'));
  const takesValue = OPTIONS[name].type === 'string';
  if (takesValue && !isGiven) throw new CommandLineError(`${rawName} needs a value`);
  if (!takesValue && value !== undefined) throw new CommandLineError(`${rawName} takes no value`);
}

function isOption(name: string): name is keyof typeof OPTIONS {
  return Object.hasOwn(OPTIONS, name);
}

function textOf(value: string | boolean | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

const NAME_COLUMNS = 32;

export function helpText(): string {
  const defaults = parseSettings({});
  const settings = settingsSchema.keyof().options.map((name) => {
    const value = defaults[name];
    return `  ${name.padEnd(NAME_COLUMNS)}${value === undefined ? '-' : String(value)}`;
  });
  return [
    `Sluice ${packageVersion()}, a rate-limiting service`,
    '',
    USAGE,
    '',
    'Settings are environment variables. docs/settings.md explains them. Their defaults:',
    ...settings,
  ].join('\n');
}
