import { describeEntry, type Entry } from '../ledger.js';
import type { Evidence } from './evidence.js';

const STATUSES_OF_CHECKS = [200, 429, 503];
const STATUSES_OF_RELEASES = [200, 404, 503];

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
  const { kind, status = 0, requestId, retryAfter, body } = entry;
  const wrong = (what: string): string[] => [`${describeEntry(entry)}: ${what}: ${body}`];
  const known = kind === 'release' ? STATUSES_OF_RELEASES : STATUSES_OF_CHECKS;
  if (!known.includes(status)) return wrong('unexpected status');
  if (status === 200 && requestId === undefined) return wrong('an approval without an id');
  if ((status === 429 || status === 503) && !/^[1-9]\d*$/.test(retryAfter ?? '')) {
    return wrong(`Retry-After is ${String(retryAfter)}`);
  }
  return [];
}

function givenTwice(entries: readonly Entry[]): Entry[] {
  const seen = new Set<string | undefined>();
  return entries.filter(({ requestId }) => seen.size === seen.add(requestId).size);
}
