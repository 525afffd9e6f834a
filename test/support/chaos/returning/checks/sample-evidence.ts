import type { FaultRecord } from '../../faults/fault.js';
import type { Happening, Run } from '../key-history.js';
import type { Terms, Visit } from '../visits.js';
import type { Evidence } from './evidence.js';

/** The terms of a request of the key `fixed`, as a test wants them. */
export function termsOf(id: string, fields: Partial<Terms> = {}): Terms {
  return { id, key: 'fixed', hits: 1, keepMillis: 1000, ...fields };
}

/** A visit of replica 0, whose id is `r0`, as a test wants it. */
export function visit(id: string, fields: Partial<Visit> = {}): Visit {
  return {
    kind: 'check',
    terms: termsOf(id),
    replica: 0,
    replicaId: 'r0',
    sentAt: 0,
    outcome: 'closed',
    endedAt: 1000,
    body: '',
    ...fields,
  };
}

/** A fault of replica 0 from 0 to 10,000, as a test wants it. */
export function fault(fields: Partial<FaultRecord> = {}): FaultRecord {
  return { name: 'fault', target: 'replica 0', beganAt: 0, endedAt: 10_000, ...fields };
}

/** What a script did to the key `fixed`. */
export function run(at: number, ...happenings: readonly Happening[]): Run {
  return { key: 'fixed', at, happenings };
}

export const joined = (id: string, ticket: number): Happening => ({ id, what: 'joined', ticket });
export const owned = (id: string, replicaId = 'r0'): Happening => ({
  id,
  what: 'owned',
  replicaId,
});
export const withdrawn = (id: string): Happening => ({ id, what: 'withdrawn' });
export const approved = (id: string): Happening => ({ id, what: 'approved' });
export const confirmed = (id: string): Happening => ({ id, what: 'confirmed' });
export const ended = (id: string): Happening => ({ id, what: 'ended' });
export const granted = (id: string, lapsesAt: number, millis = 1000): Happening => ({
  id,
  what: 'granted',
  hold: { lapsesAt, millis },
});
export const lapsed = (id: string, lapsesAt: number, millis = 1000): Happening => ({
  id,
  what: 'lapsed',
  hold: { lapsesAt, millis },
  isGrant: true,
});

interface Sample {
  readonly runs: readonly Run[];
  readonly visits?: readonly Visit[];
  readonly faults?: readonly FaultRecord[];
}

/** Evidence on a machine that never stood still. */
export function evidenceOf({ runs, visits = [], faults = [] }: Sample): Evidence {
  return {
    runs,
    visits,
    terms: new Map(visits.map(({ terms }) => [terms.id, terms])),
    faults,
    lateMillis: () => 0,
    longestStandstill: () => 0,
  };
}
