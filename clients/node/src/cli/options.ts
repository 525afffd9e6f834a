import { notShort } from '../calls/known-options.js';
import type { AskOptions, ClientOptions, ListOptions } from '../index.js';
import { parseDuration } from './durations.js';
import { CommandLineError } from './errors.js';

/** The options of all commands. Those with `takes` have a value; `text` is what the help says. */
export const OPTIONS = {
  max: { kind: 'number', takes: 'N', text: 'the most approvals in a window (maxRequests)' },
  window: { kind: 'duration', takes: 'DURATION', text: 'the length of a window (windowMillis)' },
  'max-queue': { kind: 'number', takes: 'N', text: 'the places in the queue (maxRequestsInQueue)' },
  hits: { kind: 'number', takes: 'N', text: 'how much of the maximum it takes; 1 by default' },
  lane: { kind: 'text', takes: 'NAME', text: 'the lane of the key; its last one by default' },
  group: { kind: 'name', takes: 'NAME', text: 'the fair group of the key, such as a tenant' },
  hold: {
    kind: 'duration',
    takes: 'DURATION',
    text: 'how long it is held (run: 30s, and renewed; check: not held)',
  },
  wait: { kind: 'flag', text: 'wait for a turn' },
  'no-wait': { kind: 'flag', text: 'be denied at once instead of waiting' },
  'max-wait': {
    kind: 'duration',
    takes: 'DURATION',
    text: 'the longest wait; no limit by default',
  },
  holder: { kind: 'name', takes: 'TEXT', text: 'who holds it; host and process by default' },
  grace: {
    kind: 'duration',
    takes: 'DURATION',
    text: 'between SIGTERM and SIGKILL when the hold is lost; 10s by default',
  },
  quiet: { kind: 'flag', text: 'write errors only' },
  end: { kind: 'flag', text: 'end the pause' },
  interval: { kind: 'duration', takes: 'DURATION', text: 'between two draws; 2s by default' },
  once: { kind: 'flag', text: 'print once, also on a terminal' },
  url: {
    kind: 'texts',
    takes: 'URL',
    text: 'an address of Sluice; repeat it for several addresses',
  },
  'token-file': { kind: 'text', takes: 'FILE', text: 'the file with the bearer token' },
  json: { kind: 'flag', text: 'write JSON' },
} as const;

export type OptionName = keyof typeof OPTIONS;

interface ValuesByKind {
  readonly flag: true;
  readonly text: string;
  /** 1 to 64 bytes. */
  readonly name: string;
  readonly texts: readonly string[];
  readonly number: number;
  /** In milliseconds. */
  readonly duration: number;
}

/** The options that were given. */
export type Values = {
  readonly [Name in OptionName]?: ValuesByKind[(typeof OPTIONS)[Name]['kind']];
};

export function isOption(name: string): name is OptionName {
  return Object.hasOwn(OPTIONS, name);
}

export function takesValue(name: OptionName): boolean {
  return OPTIONS[name].kind !== 'flag';
}

/**
 * The value of an option as it is given.
 * @param before what was given for the same option before
 * @throws CommandLineError for a value that the option does not take
 */
export function valueOf(name: OptionName, text: string, before: unknown): unknown {
  const option = `--${name}`;
  switch (OPTIONS[name].kind) {
    case 'flag':
      return true;
    case 'text':
      return notEmpty(option, text);
    case 'texts':
      return [...((before ?? []) as readonly string[]), notEmpty(option, text)];
    case 'name': {
      const wrong = notShort(option, text);
      if (wrong) throw new CommandLineError(wrong.message);
      return text;
    }
    case 'number':
      if (/^\d{1,15}$/.test(text)) return Number(text);
      throw new CommandLineError(`${option} must be a whole number, not ${JSON.stringify(text)}`);
    case 'duration':
      return parseDuration(option, text);
  }
}

function notEmpty(option: string, text: string): string {
  if (text !== '') return text;
  throw new CommandLineError(`${option} needs a value`);
}

/** On a terminal somebody looks at the place in the queue: Sluice is asked for it so often. */
const SEEN_POLL_MILLIS = 2000;

/** In which list a check is, and how much it takes. */
export function placeOf({ hits, lane, group }: Values): ListOptions & Pick<AskOptions, 'hits'> {
  return { hits, lane, group };
}

/** What a check asks for, without its hold. */
export function askingOf(values: Values): Omit<AskOptions, 'signal' | 'timeoutMillis'> {
  return {
    ...placeOf(values),
    maxRequests: values.max,
    maxRequestsInQueue: values['max-queue'],
    windowMillis: values.window,
  };
}

export function waitingOf({ holder }: Values): Omit<ClientOptions, 'url' | 'token'> {
  return process.stderr.isTTY ? { holder, longPollMillis: SEEN_POLL_MILLIS } : { holder };
}
