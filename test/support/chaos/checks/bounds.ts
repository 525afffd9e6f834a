import { type FaultRecord, overlapMillis } from '../faults/fault.js';
import { describeEntry, type Entry } from '../ledger.js';
import { STORE_TIMEOUT_MILLIS } from '../limits.js';
import type { Evidence } from './evidence.js';

/** What a busy machine may add. */
const SLACK_MILLIS = 2000;

/** At most one is under way when a wait is over, one follows, and one has asked for the place. */
const CALLS_OF_A_LIMITED_WAIT = 3;

/** Every request that does not wait, or not for long, is answered in time, and every other before the round ends. */
export function lateAnswers(
  evidence: Pick<Evidence, 'ledger' | 'faults' | 'standstills'>,
): string[] {
  const { ledger } = evidence;
  const late = ledger.entries.flatMap((entry) => {
    const { sentAt, endedAt, replica } = entry;
    const bound = boundOf(entry);
    if (endedAt === undefined || bound === undefined) return [];
    const took = endedAt - sentAt;
    if (took <= bound + SLACK_MILLIS) return [];
    const stops = (fault: FaultRecord): boolean => fault.stops?.includes(replica) === true;
    const allowed = bound + SLACK_MILLIS + excusedMillis(evidence, stops, sentAt, endedAt);
    return took > allowed ? [`${describeEntry(entry)} took ${took} ms, not ${allowed}`] : [];
  });
  const unanswered = ledger.pending.map(
    (entry) => `${describeEntry(entry)}, sent at ${entry.sentAt}, was never answered`,
  );
  return [...late, ...unanswered];
}

/** Undefined where a request waits for as long as it takes. */
function boundOf({ kind, limitMillis }: Entry): number | undefined {
  if (limitMillis !== undefined)
    return limitMillis + CALLS_OF_A_LIMITED_WAIT * STORE_TIMEOUT_MILLIS;
  return kind === 'wait' || kind === 'disconnect' ? undefined : STORE_TIMEOUT_MILLIS;
}

/** Every approval is told soon after Redis has given it: no lost wake leaves anybody waiting. */
export function lateNews(evidence: Evidence): string[] {
  return evidence.ledger.approvals.flatMap((approval) => {
    const { requestId, replica, endedAt } = approval;
    const given = evidence.account.approvals.get(requestId)?.findLast(({ at }) => at <= endedAt);
    if (!given) return [];
    const took = endedAt - given.at;
    if (took <= SLACK_MILLIS) return [];
    const silences = ({ isolates, silencesRedis }: FaultRecord): boolean =>
      silencesRedis === true || isolates?.includes(replica) === true;
    const allowed = SLACK_MILLIS + excusedMillis(evidence, silences, given.at, endedAt);
    return took > allowed
      ? [`${describeEntry(approval)} was told ${took} ms after Redis gave it, not ${allowed}`]
      : [];
  });
}

/** How long faults of a kind lasted, or the whole machine stood still. */
function excusedMillis(
  { faults, standstills }: Pick<Evidence, 'faults' | 'standstills'>,
  isExcuse: (fault: FaultRecord) => boolean,
  from: number,
  to: number,
): number {
  return faults
    .filter(isExcuse)
    .reduce(
      (sum, fault) => sum + overlapMillis(fault, from, to),
      standstills.millisWithin(from, to),
    );
}
