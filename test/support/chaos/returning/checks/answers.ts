import { type FaultRecord, overlaps } from '../../faults/fault.js';
import { describeVisit, type Visit } from '../visits.js';
import { type Dated, type Evidence, happeningsById, visitsById } from './evidence.js';

/** A check that may be answered at once, or whose wait has ended, is answered by then. */
const ANSWERED_WITHIN_MILLIS = 1500;

const USED = 'was released, or has lapsed';
const ENDS_APPROVAL = new Set(['ended', 'lapsed']);

type Judged = Pick<Evidence, 'runs' | 'visits' | 'faults' | 'lateMillis'>;

/** Describes answers that are none of the contract's, and those that the account of Redis does not support. */
export function wrongAnswers(evidence: Judged): string[] {
  const happenings = happeningsById(evidence.runs);
  const visits = visitsById(evidence.visits);
  return evidence.visits.flatMap((visit) => {
    const { id } = visit.terms;
    const ofId = { happenings: happenings.get(id) ?? [], visits: visits.get(id) ?? [] };
    const problem = problemOf(visit, ofId, evidence) ?? lateness(visit, evidence);
    return problem === undefined ? [] : [`${describeVisit(visit)}: ${problem}: ${visit.body}`];
  });
}

interface OfRequest {
  readonly happenings: readonly Dated[];
  readonly visits: readonly Visit[];
}

function problemOf(visit: Visit, ofId: OfRequest, { faults }: Judged): string | undefined {
  const { kind, outcome, status, terms } = visit;
  if (outcome === 'pending') return 'never answered';
  if (outcome === 'cut') return isDisturbed(visit, faults) ? undefined : 'the connection broke';
  if (outcome === 'closed') return undefined;
  if (status === 503) return problemOf503(visit, faults);
  if (kind === 'release') return status === 200 || status === 404 ? undefined : 'unexpected status';
  switch (status) {
    case 200:
      return isFounded(visit, ofId) ? undefined : 'no script has approved it for good';
    case 202:
      return problemOf202(visit);
    case 409:
      return isConflict(visit, ofId) ? undefined : 'no other check has its place';
    case 429:
      return terms.maxWaitMillis === undefined ? 'denied though it can wait' : undefined;
    default:
      return 'unexpected status';
  }
}

function problemOf503(visit: Visit, faults: readonly FaultRecord[]): string | undefined {
  const { terms, sentAt, endedAt = Infinity } = visit;
  // Its hold may have lapsed before its answer came, on a machine that is too busy.
  if (terms.holdMillis !== undefined && endedAt - sentAt >= terms.holdMillis) return undefined;
  if (!isDisturbed(visit, faults)) return 'nothing was wrong';
  if (visit.retryAfter === undefined) return 'no Retry-After';
  const isHandedOver = visit.body.includes('HANDED_OVER');
  const invites = visit.retryAfter === '0' && visit.connection === 'close';
  return isHandedOver && !invites
    ? 'a place that is handed over is to be taken up at once'
    : undefined;
}

/** Whether a replica was killed, stopped or stood still while a caller was connected to it. */
function isDisturbed(
  { replica, sentAt, endedAt = Infinity }: Visit,
  faults: readonly FaultRecord[],
): boolean {
  return faults.some(
    (fault) => fault.isolates?.includes(replica) === true && overlaps(fault, sentAt, endedAt),
  );
}

/** An approval that is still to be confirmed may lapse: nobody may be told of it. */
function isFounded({ endedAt = 0 }: Visit, { happenings }: OfRequest): boolean {
  return happenings.some(
    ({ what, at }) =>
      (what === 'approved' || what === 'confirmed' || what === 'served') && at <= endedAt + 1,
  );
}

function problemOf202({ preferSeconds, body, terms }: Visit): string | undefined {
  if (preferSeconds === undefined) return 'it was to wait for its turn';
  const { request_id, position, waitMillis } = JSON.parse(body) as Record<string, unknown>;
  if (request_id !== terms.id) return 'another request';
  if (!Number.isInteger(position) || Number(position) < 1) return 'no position';
  return Number(waitMillis) >= 0 ? undefined : 'no estimate';
}

/** Another check of the caller has the place, or the approval of the request has been released or has lapsed. */
function isConflict(visit: Visit, { happenings, visits }: OfRequest): boolean {
  const { sentAt, endedAt = Infinity, body } = visit;
  if (body.includes(USED)) {
    return happenings.some(({ what, at }) => ENDS_APPROVAL.has(what) && at <= endedAt + 1);
  }
  const meanwhile = happenings.filter(({ at }) => at >= sentAt - 1 && at <= endedAt + 1);
  // The check of an earlier visit may reach Redis after its own, and may find that the longest wait is over.
  if (meanwhile.filter(({ what }) => what === 'owned').length > 1) return true;
  if (meanwhile.some(({ what }) => what === 'withdrawn')) return true;
  return visits.some(
    (other) => other !== visit && other.sentAt <= endedAt && (other.endedAt ?? Infinity) >= sentAt,
  );
}

function lateness(visit: Visit, { faults, lateMillis }: Judged): string | undefined {
  const { preferSeconds, sentAt, endedAt = Infinity, kind } = visit;
  if (kind === 'check' && preferSeconds === undefined) return undefined;
  if (isDisturbed(visit, faults)) return undefined;
  const millis = endedAt - sentAt - (preferSeconds ?? 0) * 1000;
  const late = millis - ANSWERED_WITHIN_MILLIS - lateMillis(sentAt, endedAt);
  return late > 0 ? `answered after ${endedAt - sentAt} ms` : undefined;
}
