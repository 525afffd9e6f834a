import type { QueueList } from './queue-order.js';

/** What a check asks for that outlives the check: it waits, is stored and is shown with the request. */
export interface RequestTerms {
  /** How much of the maximum it takes, all or nothing. Default: 1. */
  readonly hits?: number | undefined;
  /**
   * Holds the approval: it counts in every window until it is released, or until this many milliseconds have passed
   * since the approval or its last renewal. Undefined: the approval counts in its window only.
   */
  readonly holdMillis?: number | undefined;
  /** With `holdMillis`: who holds the approval, for people who look at the key. Undefined: it does not say. */
  readonly holder?: string | undefined;
  /**
   * Of a request that can wait and whose caller has chosen its id: its place stays for this long after its caller has
   * disconnected, or was told that it waits. If its turn comes meanwhile, an approval is kept for it as long.
   * Undefined: the place ends with the check. At least {@link BOUNDS.holdMillis}.min.
   */
  readonly keepMillis?: number | undefined;
  /**
   * Of a request that can wait: the longest that it waits in the queue. It is denied at once if its turn can't come
   * in time, and when that time is over. Undefined: as long as it takes. With `keepMillis` the time begins when the
   * request gets its place, and passes also while nobody asks. Otherwise it begins with each check.
   */
  readonly maxWaitMillis?: number | undefined;
  /** The list that it belongs to. Undefined: the key has one list, first come, first served. */
  readonly list?: QueueList | undefined;
}

/**
 * The names of all terms. Code that passes a request on does so by this list, or passes it whole, so that it need not change
 * when a request gets another term.
 */
export const TERMS = Object.keys({
  hits: true,
  holdMillis: true,
  holder: true,
  keepMillis: true,
  maxWaitMillis: true,
  list: true,
} satisfies Record<keyof RequestTerms, true>) as readonly (keyof RequestTerms)[];

/** The terms that are texts for people who look at a held approval. A check has them only with `holdMillis`. */
export const LABELS = ['holder'] as const satisfies readonly (keyof RequestTerms)[];

/** What all checks of a request have to ask for alike, and what is said of one that does not. */
export const OTHER_TERM = {
  hits: 'other_hits',
  holdMillis: 'other_hold',
  holder: 'other_holder',
} as const satisfies Partial<Record<keyof RequestTerms, string>>;

export type OtherTerm = (typeof OTHER_TERM)[keyof typeof OTHER_TERM];

/** A request as a limiter knows it. Only a request that waits, is held, or whose caller has chosen the id is known this well. */
export interface LimitedRequest extends RequestTerms {
  readonly requestId: string;
  /**
   * The number of the claim of the check that it belongs to now, see `claimOf`. Undefined unless its caller has chosen the
   * id.
   */
  readonly owner?: number | undefined;
}

/** The terms of a request that asks for one hit and nothing else. */
const PLAIN_TERMS: RequestTerms = {};

/** Returns the terms of a check to be kept, without anything else that the check says. */
export function termsOf(check: RequestTerms): RequestTerms {
  const names = TERMS.filter((name) => check[name] !== undefined);
  if (names.length === 0) return PLAIN_TERMS;
  const terms: Partial<Record<keyof RequestTerms, unknown>> = {};
  for (const name of names) terms[name] = check[name];
  // A text that is a part of a URL keeps the whole URL in memory.
  for (const name of LABELS) if (check[name]) terms[name] = Buffer.from(check[name]).toString();
  return terms as RequestTerms;
}

export type Labels = Pick<RequestTerms, (typeof LABELS)[number]>;

/** Returns the labels that a request has. */
export function labelsOf(terms: RequestTerms): Labels {
  return Object.fromEntries(
    LABELS.filter((name) => terms[name] !== undefined).map((name) => [name, terms[name]]),
  );
}

/** Returns what is said of the first of some terms in which two checks of a request differ; undefined if there is none. */
export function otherTerm(
  names: readonly (keyof typeof OTHER_TERM)[],
  one: RequestTerms,
  other: RequestTerms,
): OtherTerm | undefined {
  const differing = names.find((name) => valueOf(one, name) !== valueOf(other, name));
  return differing && OTHER_TERM[differing];
}

function valueOf(terms: RequestTerms, name: keyof RequestTerms): unknown {
  return terms[name] ?? (name === 'hits' ? 1 : undefined);
}

/** Whether its approval is held. */
export function isHeld({ holdMillis }: RequestTerms): boolean {
  return holdMillis !== undefined;
}

export type RequestState =
  'new' | 'waiting' | 'unclaimed' | 'approved' | 'held' | 'released' | 'withdrawn' | 'lapsed';

interface StateRules {
  /** What a request takes of its limits. */
  readonly counts: 'nothing' | 'its windows' | 'every window';
  /** The states that may follow. */
  readonly next: readonly RequestState[];
}

/**
 * The states of a request. One that is denied has no state any more. `docs/how-it-works.md` has the same table, and says what
 * ends each state.
 */
export const STATES: Readonly<Record<RequestState, StateRules>> = {
  new: { counts: 'nothing', next: ['waiting', 'approved', 'held'] },
  waiting: { counts: 'nothing', next: ['unclaimed', 'approved', 'held', 'withdrawn'] },
  /** Approved, and kept until its caller has got the approval. */
  unclaimed: { counts: 'every window', next: ['approved', 'held', 'withdrawn', 'lapsed'] },
  approved: { counts: 'its windows', next: ['released', 'withdrawn'] },
  held: { counts: 'every window', next: ['released', 'withdrawn', 'lapsed'] },
  /** Its caller has given the approval back. A check with its id is told that it is over. */
  released: { counts: 'nothing', next: [] },
  /** Nobody has got an approval. Its id is unknown from now on. */
  withdrawn: { counts: 'nothing', next: [] },
  lapsed: { counts: 'nothing', next: [] },
};

/**
 * A claim names a check whose caller has chosen the request id: `<request id>#<number>`. All checks with the id are one
 * request, which belongs to the latest of them. The number tells them apart.
 */
const SEPARATOR = '#';

let last = 0;

/** Returns the number of another check: no two of this process have the same. */
export function nextClaimNumber(): number {
  last += 1;
  return last;
}

/** @returns undefined without a number, which only a check has whose caller has chosen the request id */
export function claimOf(requestId: string, number: number | undefined): string | undefined {
  return number === undefined ? undefined : `${requestId}${SEPARATOR}${number}`;
}

/** What a claim names. `number` is undefined if it is a request id. */
export interface Claimed {
  readonly requestId: string;
  readonly number: number | undefined;
}

/** @param claim a claim, or a request id */
export function parseClaim(claim: string): Claimed {
  const [requestId = '', number] = claim.split(SEPARATOR);
  return { requestId, number: number === undefined ? undefined : Number(number) };
}

/**
 * Whether the caller of a request is still connected. An AbortSignal would do the same, but removing its listener takes
 * a quarter of the time of an answer to a waiter.
 */
export class CallerPresence {
  #isDisconnected = false;
  /** Called when the caller disconnects. */
  onDisconnect: (() => void) | undefined;

  get isDisconnected(): boolean {
    return this.#isDisconnected;
  }

  disconnect(): void {
    if (this.#isDisconnected) return;
    this.#isDisconnected = true;
    this.onDisconnect?.();
  }
}
