import type * as options from '../options.js';

/** UTF-8 bytes of a holder and of a group. Sluice rejects a longer text. */
export const MOST_BYTES = 64;
/** Half of a character: it has no UTF-8. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/** What is wrong with a text if it can't be sent. */
export function notUnicode(name: string, text: string): TypeError | undefined {
  if (!LONE_SURROGATE.test(text)) return undefined;
  const shown = JSON.stringify(text);
  return new TypeError(`${name} is not valid Unicode: ${shown} has half of a surrogate pair`);
}

/** What is wrong with a text if it is empty or too long. */
export function notShort(name: string, text: string): RangeError | undefined {
  const bytes = Buffer.byteLength(text);
  if (bytes >= 1 && bytes <= MOST_BYTES) return undefined;
  return new RangeError(`${name} must be 1 to ${MOST_BYTES} bytes of UTF-8, not ${bytes}`);
}

/** What is wrong with the name of a group, of which a caller in JavaScript may give a number. */
export function faultOfGroup(group: unknown): Error | undefined {
  if (group === undefined) return undefined;
  if (typeof group !== 'string')
    return new TypeError(`group must be a text, not ${JSON.stringify(group)}`);
  return notUnicode('group', group) ?? notShort('group', group);
}

/** The names of the options that exist. A type of options that gets a new one does not compile until it is here. */
type Names<Options> = Readonly<Record<keyof Options, true>>;

export const REQUEST: Names<options.RequestOptions> = { signal: true, timeoutMillis: true };
const LIST: Names<options.ListOptions> = { lane: true, group: true };
export const PEEK: Names<options.PeekOptions> = { ...REQUEST, ...LIST, hits: true };
export const RENEW: Names<options.RenewOptions> = { ...REQUEST, holdMillis: true };
export const PAUSE: Names<options.PauseOptions> = { ...REQUEST, canShorten: true, group: true };
export const REPORT: Names<options.ReportOptions> = {
  ...REQUEST,
  resetMillis: true,
  limit: true,
  group: true,
};
/** The options of checks and waits without their signal. */
export const ASKING: Names<Omit<options.AskOptions, 'signal'>> = {
  ...LIST,
  timeoutMillis: true,
  holdMillis: true,
  hits: true,
  maxRequests: true,
  maxRequestsInQueue: true,
  windowMillis: true,
};
export const CHECK: Names<options.CheckOptions> = { ...ASKING, signal: true, quota: true };
export const WAIT: Names<options.WaitOptions> = {
  ...ASKING,
  signal: true,
  maxWaitMillis: true,
  onProgress: true,
};
export const PERMIT: Names<options.PermitOptions> = { ...WAIT, wait: true };
export const CLIENT: Names<options.ClientOptions> = {
  url: true,
  token: true,
  timeoutMillis: true,
  correlationId: true,
  maxCalls: true,
  retries: true,
  holder: true,
  keepMillis: true,
  longPollMillis: true,
  fetch: true,
};

/**
 * Finds an option that does not exist. A misspelt limit must not be ignored.
 * @returns an error that names the option, and the one that is most like it
 */
export function unknownOption(
  options: object,
  names: Readonly<Record<string, true>>,
): TypeError | undefined {
  const unknown = Object.keys(options).find((name) => !Object.hasOwn(names, name));
  if (unknown === undefined) return undefined;
  return new TypeError(`unknown option ${unknown}; did you mean ${nearest(unknown, names)}?`);
}

export function demandKnown(options: object, names: Readonly<Record<string, true>>): void {
  const error = unknownOption(options, names);
  if (error) throw error;
}

/** `timeout` is most like `timeoutMillis`, although fewer letters make it `signal`. */
function nearest(given: string, names: object): string {
  const text = given.toLowerCase();
  const [first] = Object.keys(names)
    .map((name) => {
      const known = name.toLowerCase();
      return { name, difference: known.startsWith(text) ? 0 : distance(text, known) };
    })
    .sort((one, other) => one.difference - other.difference);
  return first?.name ?? '';
}

/** How many letters differ, by Levenshtein. */
function distance(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, i) => i);
  for (let i = 0; i < one.length; i += 1) {
    const next = [i + 1];
    for (let j = 0; j < other.length; j += 1) {
      const replaced = (row[j] ?? 0) + (one[i] === other[j] ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
