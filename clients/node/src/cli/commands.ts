import type { OptionName } from './options.js';

export type CommandName = 'run' | 'check' | 'release' | 'peek' | 'pause' | 'top' | 'completion';

/** What a command takes. */
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
    options: ['end', ...CONNECTION],
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

export function isCommand(name: string): name is CommandName {
  return Object.hasOwn(COMMANDS, name);
}
