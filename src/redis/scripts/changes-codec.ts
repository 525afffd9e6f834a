import { BOUNDS } from '../../limiter/bounds.js';
import type {
  Amended,
  Amendment,
  RejectedAmendment,
  RejectedReport,
  Remaining,
  RemainingReport,
} from '../../limiter/limiter.js';

/** What `lua/amend.lua` replies, unless it is the time until the hold lapses. */
export const AMEND_REPLY = {
  ofWindow: -1,
  notFound: -2,
  holdTooLong: -3,
  /** Less the most hits that the approval may get. */
  tooManyHits: -4,
} as const;

/** The arguments of `lua/amend.lua` that are its own. */
export function encodeAmendment(requestId: string, amendment: Amendment): (string | number)[] {
  const { hits = '', holdMillis = '', maxHits = '' } = amendment;
  const { maxHoldMillis = BOUNDS.holdMillis.max } = amendment;
  return [requestId, hits, holdMillis, maxHits, maxHoldMillis];
}

/** @returns undefined if there is no such approval */
export function decodeAmended(reply: unknown): Amended | RejectedAmendment | undefined {
  const number = Number(reply);
  if (number <= AMEND_REPLY.tooManyHits)
    return { rejected: 'hits', maxHits: AMEND_REPLY.tooManyHits - number };
  if (number === AMEND_REPLY.holdTooLong) return { rejected: 'hold' };
  if (number === AMEND_REPLY.notFound) return undefined;
  return number === AMEND_REPLY.ofWindow ? {} : { holdMillis: number };
}

/** The arguments of `lua/remaining.lua` that are its own. */
export function encodeReport(report: RemainingReport): (string | number)[] {
  const { limit = '', remaining, resetMillis = '' } = report;
  return [limit, remaining, resetMillis];
}

/** What `lua/remaining.lua` replies. A key without further limits names none. */
type ReportSaid = Remaining | (Partial<RejectedReport> & Pick<RejectedReport, 'rejected'>);

export function decodeReported(reply: unknown): Remaining | RejectedReport {
  const said = JSON.parse(reply as string) as ReportSaid;
  return { ...('rejected' in said && said.rejected === 'limit' && { further: [] }), ...said } as
    Remaining | RejectedReport;
}
