import { ownLimit } from '../../../../src/limiter/limits.js';
import { type DeclaredLimits, LimitsInForce } from '../declared/limits-in-force.js';
import type { FaultRecord } from '../faults/fault.js';
import { type Approval, type Entry, isApproval } from '../ledger.js';
import { MAX_REQUESTS, WINDOW_MILLIS } from '../limits.js';
import type { ObservedApproval } from '../../monitor/key-account.js';
import type { Evidence } from './evidence.js';

/** An answered request of replica 0, as a test wants it. */
export function entry(fields: Partial<Entry> = {}): Entry {
  return {
    kind: 'check',
    key: 'key',
    replica: 0,
    sentAt: 0,
    endedAt: 1,
    outcome: 'answered',
    status: 200,
    requestId: undefined,
    retryAfter: undefined,
    maximum: undefined,
    body: '',
    ...fields,
  };
}

/** A fault from 0 to 10,000, as a test wants it. */
export function fault(fields: Partial<FaultRecord> = {}): FaultRecord {
  return { name: 'fault', target: 'target', beganAt: 0, endedAt: 10_000, ...fields };
}

/** That Redis approved a request from the queue. */
export function observed(id: string, at: number): readonly [string, ObservedApproval[]] {
  return [id, [{ id, at, isFromQueue: true }]];
}

interface Sample {
  readonly entries: readonly Entry[];
  readonly faults?: readonly FaultRecord[];
  readonly approvals?: readonly (readonly [string, ObservedApproval[]])[];
  readonly tickets?: readonly (readonly [string, number])[];
  readonly lists?: readonly (readonly [string, string])[];
  readonly given?: Evidence['account']['limits'];
  readonly limits?: DeclaredLimits;
  /** How long the machine stood still at a time. */
  readonly stoodStillMillis?: number;
  /** From the replica 0. */
  readonly withheldMillis?: number;
}

/** Evidence of one key on a machine that did not stand still, unless the sample says so. */
export function evidenceOf(sample: Sample): Evidence {
  const {
    entries,
    faults = [],
    approvals = [],
    tickets = [],
    lists = [],
    given = [],
    stoodStillMillis = 0,
    withheldMillis = 0,
    limits = { key: ownLimit(WINDOW_MILLIS, MAX_REQUESTS) },
  } = sample;
  return {
    ledger: {
      entries,
      pending: entries.filter(({ outcome }) => outcome === 'pending'),
      approvals: entries.filter(isApproval) as Approval[],
    },
    account: {
      violations: [],
      approvals: new Map(approvals),
      tickets: new Map(tickets),
      lists: new Map(lists),
      judged: 0,
      limits: given,
      wasWatched: () => true,
    },
    limits: new LimitsInForce(limits),
    faults,
    standstills: { millisWithin: () => 0, longestWithin: () => stoodStillMillis },
    withheld: { mostWithin: (index) => (index === 0 ? withheldMillis : 0) },
  };
}
