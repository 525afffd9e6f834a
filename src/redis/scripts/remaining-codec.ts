import type { RejectedReport, Remaining, RemainingReport } from '../../limiter/limiter.js';

/** What the reply of `lua/remaining.lua` begins with if nothing counts of the report. */
export const REPLY = { noSuchLimit: -1, noFixedWindow: -2 } as const;

/** The arguments of `lua/remaining.lua` that are its own. */
export function encodeReport(report: RemainingReport): (string | number)[] {
  const { limit = '', remaining, resetMillis = '' } = report;
  return [limit, remaining, resetMillis];
}

export function decodeReported(reply: unknown): Remaining | RejectedReport {
  const [remaining, ...texts] = reply as [number, ...string[]];
  if (remaining === REPLY.noSuchLimit) return { rejected: 'limit', further: texts };
  if (remaining !== REPLY.noFixedWindow) return { remaining };
  const [algorithm] = texts as [Extract<RejectedReport, { rejected: 'algorithm' }>['algorithm']];
  return { rejected: 'algorithm', algorithm };
}
