import type { AskOptions, ClientOptions, ListOptions } from '../index.js';
import type { Values } from './options.js';

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

/** The options of a client that waits. */
export function waitingOf({ holder }: Values): Omit<ClientOptions, 'url' | 'token'> {
  return process.stderr.isTTY ? { holder, longPollMillis: SEEN_POLL_MILLIS } : { holder };
}
