import { type FaultRecord, overlaps } from '../../faults/fault.js';
import { REPLICA_LEASE_MILLIS } from '../../limits.js';
import { describeVisit, type Visit } from '../visits.js';
import { type Dated, type Evidence, happeningsById, visitsById } from './evidence.js';

/** Clients and Redis round times to milliseconds. */
const ROUNDING_MILLIS = 2;
/** A replica renews its lease when a third of it is over. While it stands still, the rest is what it outlasts. */
const OUTLASTED_MILLIS = (REPLICA_LEASE_MILLIS * 2) / 3;
/** By then a replica that is well has told a grant to a check that waits on it. */
const TOLD_WITHIN_MILLIS = 1000;

/** A replica answers, and keeps a place from then on, so much before its caller notices. */
const ANSWER_MILLIS = 50;

type Judged = Pick<
  Evidence,
  'runs' | 'visits' | 'terms' | 'faults' | 'lateMillis' | 'longestStandstill'
>;

/** A span in which a caller was connected, and its replica was in touch with Redis or outlasted that it was not. */
interface Span {
  readonly visit: Visit;
  readonly from: number;
  readonly to: number;
}

/** What takes a place, or an approval, from its caller. */
const LOSES = new Set(['withdrawn', 'ended']);

/** Describes places and approvals that were lost although their callers were there, or came back in time. */
export function lostPlaces(evidence: Judged): string[] {
  const visits = visitsById(evidence.visits);
  return [...happeningsById(evidence.runs)].flatMap(([id, happenings]) => {
    const terms = evidence.terms.get(id);
    if (!terms) return [];
    const ofId = visits.get(id) ?? [];
    const spans = connectedSpans(happenings, ofId, evidence);
    const isOver = (at: number): boolean => {
      const joinedAt = happenings.find(({ what }) => what === 'joined')?.at ?? at;
      const longest = terms.maxWaitMillis ?? Infinity;
      return at >= joinedAt + longest - ROUNDING_MILLIS;
    };
    return happenings
      .filter(({ what, at }) => LOSES.has(what) && !mayBeReleased(ofId, at) && !isOver(at))
      .flatMap(({ what, at }) => {
        const since = at - terms.keepMillis + ROUNDING_MILLIS;
        const span = spans.find(({ from, to }) => from <= at && to > since);
        // Leases may run out with the machine.
        if (!span || evidence.longestStandstill(since, at) >= OUTLASTED_MILLIS) return [];
        return [
          `${terms.key}: ${id} lost its place or approval (${what}) at ${at}, within ${terms.keepMillis} ms of ` +
            `${describeVisit(span.visit)}, which was connected from ${span.from} to ${span.to}`,
        ];
      });
  });
}

/** Describes approvals from the queue that lapsed although their callers had come back in time. */
export function lostTurns(evidence: Judged): string[] {
  const visits = visitsById(evidence.visits);
  return [...happeningsById(evidence.runs)].flatMap(([id, happenings]) => {
    if (!evidence.terms.has(id)) return [];
    const ofId = visits.get(id) ?? [];
    const spans = connectedSpans(happenings, ofId, evidence);
    return happenings.flatMap((happening, i) => {
      if (happening.what !== 'lapsed' || !happening.isGrant) return [];
      const { lapsesAt } = happening.hold;
      const grantedAt = happenings.slice(0, i).findLast(({ what }) => what === 'granted')?.at ?? 0;
      const millis = TOLD_WITHIN_MILLIS + evidence.lateMillis(grantedAt, lapsesAt);
      const span = spans.find(
        (each) =>
          each.to >= lapsesAt &&
          lapsesAt - Math.max(each.from, grantedAt) > millis &&
          !standsStill(each.visit.replica, grantedAt, lapsesAt, evidence.faults),
      );
      const told = ofId.find(
        ({ status, endedAt = 0 }) => status === 200 && endedAt >= grantedAt && endedAt <= lapsesAt,
      );
      const visit = span?.visit ?? told;
      if (!visit) return [];
      return [
        `the grant of ${id} at ${grantedAt} lapsed at ${lapsesAt} in spite of ${describeVisit(visit)}`,
      ];
    });
  });
}

/** A replica that stands still tells nobody of a grant. */
function standsStill(
  replica: number,
  from: number,
  to: number,
  faults: readonly FaultRecord[],
): boolean {
  return faults.some(
    (fault) => fault.stops?.includes(replica) === true && overlaps(fault, from, to),
  );
}

function mayBeReleased(visits: readonly Visit[], at: number): boolean {
  return visits.some(
    ({ kind, sentAt, endedAt = Infinity, status }) =>
      kind === 'release' &&
      sentAt <= at + ROUNDING_MILLIS &&
      (status === undefined || endedAt >= at - ROUNDING_MILLIS),
  );
}

/**
 * When the callers of a request were connected: from when a check had reached Redis on, as the owner of the request, until
 * its visit ended, or another check has taken over. A replica that stands still ends a connection as soon as it can no longer
 * be known to live.
 */
export function connectedSpans(
  happenings: readonly Dated[],
  visits: readonly Visit[],
  { faults, lateMillis }: Pick<Evidence, 'faults' | 'lateMillis'>,
): Span[] {
  const owned = happenings.filter((happening) => happening.what === 'owned');
  const unused = new Set(owned);
  return visits
    .filter(({ kind }) => kind === 'check')
    .flatMap((visit) => {
      const { sentAt, endedAt = Infinity, replicaId, outcome, preferSeconds } = visit;
      const own = [...unused].find(
        (each) => each.replicaId === replicaId && each.at >= sentAt - ROUNDING_MILLIS,
      );
      if (!own) return [];
      unused.delete(own);
      const mayBeAnswered = outcome === 'answered' || preferSeconds !== undefined;
      // On a busy machine, a caller may leave before it reads that its check has failed.
      const late = (mayBeAnswered ? ANSWER_MILLIS : 0) + lateMillis(own.at, endedAt);
      // Its caller may leave before it is told.
      const next = owned[owned.indexOf(own) + 1];
      const to = Math.min(endedAt - late, next?.at ?? Infinity);
      return inTouch(visit, { from: own.at, to }, faults);
    });
}

/** The parts of a span in which the replica of a visit was in touch. */
function inTouch(
  visit: Visit,
  { from, to }: { readonly from: number; readonly to: number },
  faults: readonly FaultRecord[],
): Span[] {
  const standing = faults.find(
    (fault) =>
      fault.stops?.includes(visit.replica) === true && fault.beganAt <= to && fault.endedAt >= from,
  );
  if (!standing) return [{ visit, from, to }];
  const stoodFrom = Math.max(from, standing.beganAt);
  const first = { visit, from, to: Math.min(to, stoodFrom + OUTLASTED_MILLIS) };
  // What it does when it goes on again is in the next span.
  if (standing.endedAt + TOLD_WITHIN_MILLIS >= to) return [first];
  return [first, ...inTouch(visit, { from: standing.endedAt + TOLD_WITHIN_MILLIS, to }, faults)];
}
