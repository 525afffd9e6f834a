import { z } from 'zod';

import { parsedMessage } from '../../common/parsed-message.js';
import { DENIAL_REASONS } from '../../limiter/limiter.js';
import type { DecisionTotals } from '../../metrics/metrics.js';
import { type DeniedKey, NO_DENIALS } from '../deciding/recent-denials.js';

/** What a replica tells the others for the dashboard. */
export interface ReplicaReport {
  readonly replica: string;
  /** Since its start. It orders its reports, and gives the time between two of them. */
  readonly uptimeMillis: number;
  /** Since its start. */
  readonly decisions: DecisionTotals;
  /** Requests that wait there. */
  readonly waiting: number;
  /** The digest of its rules. */
  readonly rules: string;
  /** The keys that it denies now. */
  readonly denied: readonly DeniedKey[];
}

/** The most denied keys of a report, those with the highest rates. */
const MOST_DENIED = 64;

const number = z.number().nonnegative();

const deniedSchema: z.ZodType<DeniedKey> = z.object({
  key: z.string(),
  perSecond: number,
  count: number,
  // A replica of an older version knows fewer reasons.
  byReason: z
    .partialRecord(z.enum(DENIAL_REASONS), number)
    .transform((counts) => ({ ...NO_DENIALS, ...counts })),
  lastReason: z.enum(DENIAL_REASONS),
  lastLimit: z.string().optional(),
  isShadow: z.boolean(),
  caller: z.string().optional(),
  sinceMillis: number,
  lastMillis: number,
});

const reportSchema: z.ZodType<ReplicaReport> = z.object({
  replica: z.string(),
  uptimeMillis: number,
  decisions: z.object({
    approved: number,
    denied: number,
    shadowed: number,
    withdrawn: number,
    failed: number,
  }),
  waiting: number,
  rules: z.string(),
  denied: z.array(deniedSchema),
});

export function writeReport(report: ReplicaReport): string {
  const byRate = report.denied.toSorted((a, b) => b.perSecond - a.perSecond);
  return JSON.stringify({ ...report, denied: byRate.slice(0, MOST_DENIED) });
}

/** @returns undefined for a report that a replica of another version writes in another form */
export function readReport(text: string): ReplicaReport | undefined {
  return parsedMessage(reportSchema, text);
}
