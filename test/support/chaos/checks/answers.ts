import { describeEntry, type Entry, isApproval, type RequestKind } from '../ledger.js';
import { NAME_OF_RULES } from '../declared/rules-text.js';
import { FURTHER, KEYS, SHARE, TENANT } from '../limits.js';
import type { Evidence } from './evidence.js';

const STATUSES_OF_CHECKS = [200, 429, 503];
const STATUSES_OF_RELEASES = [200, 404, 503];
const STATUSES: Readonly<Record<RequestKind, readonly number[]>> = {
  check: STATUSES_OF_CHECKS,
  wait: STATUSES_OF_CHECKS,
  disconnect: STATUSES_OF_CHECKS,
  release: STATUSES_OF_RELEASES,
  amend: STATUSES_OF_RELEASES,
  pause: [200, 503],
  report: [200, 503],
};
/** While a key is turned off, several hits are more than its maximum. */
const TOO_MANY_HITS = 'hits must be at most 0, the maximum of ';
/** Rules may have given its key other lists. */
const OTHER_LISTS =
  /"(lane must be left out: the key has no lanes|lane must be one of|group must be left out)/;
/** Rules may have given its key another algorithm. */
const NO_FIXED_WINDOW =
  /limit must name a fixed window; default is a (sliding_window|token_bucket)/;
/** A correction sets at most ten times the maximum, so of a key that is turned off, what its approval has already. */
const NO_MORE_HITS = /hits must be at most [1-9] in a correction for this key/;

/** Every answer is one that the contract knows; no approval is given, or taken back, twice. */
export function wrongAnswers({ ledger }: Pick<Evidence, 'ledger'>): string[] {
  const answered = ledger.entries.filter(({ outcome }) => outcome === 'answered');
  const released = answered.filter(({ kind, status }) => kind === 'release' && status === 200);
  return [
    ...answered.flatMap(wrongIn),
    ...givenTwice(ledger.approvals).map((entry) => `${describeEntry(entry)}: an id given before`),
    ...givenTwice(released).map((entry) => `${describeEntry(entry)}: released before`),
  ];
}

function wrongIn(entry: Entry): string[] {
  const { kind, status = 0, requestId, retryAfter, body, hits = 1, lane, group } = entry;
  const wrong = (what: string): string[] => [`${describeEntry(entry)}: ${what}: ${body}`];
  if (status === 400 && hits > 1 && body.includes(TOO_MANY_HITS)) return [];
  if (status === 403 && kind === 'amend' && NO_MORE_HITS.test(body)) return [];
  if (status === 400 && kind === 'report' && NO_FIXED_WINDOW.test(body)) return [];
  if (status === 400 && (lane ?? group) !== undefined && OTHER_LISTS.test(body)) return [];
  if (!STATUSES[kind].includes(status)) return wrong('unexpected status');
  if (kind === 'report' && status === 200 && !leavesNoMore(entry)) return wrong('too much is left');
  if (isApproval(entry) && requestId === undefined) return wrong('an approval without an id');
  if (status === 429 && !isDeniedByOwnLimit(entry)) return wrong('denied by a limit of no rules');
  if ((status === 429 || status === 503) && !/^[1-9]\d*$/.test(retryAfter ?? '')) {
    return wrong(`Retry-After is ${String(retryAfter)}`);
  }
  return [];
}

/** A report never makes room. */
function leavesNoMore({ body, remaining = 0 }: Entry): boolean {
  return (JSON.parse(body) as { remaining: number }).remaining <= remaining;
}

/** Whether the limit that a denial names, if any, is one that rules may have given its key. */
function isDeniedByOwnLimit({ key, body }: Entry): boolean {
  const { limit } = JSON.parse(body || '{}') as { limit?: string };
  if (limit === undefined) return true;
  const isLimited = KEYS.limited.some((each) => each === key);
  const isOrdered = KEYS.ordered.some((each) => each === key);
  const further = isLimited ? FURTHER : isOrdered ? [SHARE, TENANT] : [];
  // With one limit, a denial names none.
  if (further.length === 0) return false;
  return NAME_OF_RULES.test(limit) || further.some(({ name }) => name === limit);
}

function givenTwice(entries: readonly Entry[]): Entry[] {
  const seen = new Set<string | undefined>();
  return entries.filter(({ requestId }) => seen.size === seen.add(requestId).size);
}
