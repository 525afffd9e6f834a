import type { FaultRecord } from '../../faults/fault.js';
import type { Happening, Run } from '../key-history.js';
import type { Terms, Visit } from '../visits.js';

/** What a round is judged by. */
export interface Evidence {
  /** What the scripts did, in Redis's order. */
  readonly runs: readonly Run[];
  /** What the clients saw, in the order in which they sent it. */
  readonly visits: readonly Visit[];
  /** Of the requests of the clients, by their ids. */
  readonly terms: ReadonlyMap<string, Terms>;
  readonly faults: readonly FaultRecord[];
  /** For how long the machine may have kept a request waiting within a span of time, in milliseconds. */
  lateMillis(from: number, to: number): number;
  /** The longest that the machine stood still at a time within a span of time, in milliseconds. */
  longestStandstill(from: number, to: number): number;
}

export type Dated = Happening & { readonly key: string; readonly at: number };

/** What happened to each request, by its id, in Redis's order. */
export function happeningsById(runs: readonly Run[]): Map<string, Dated[]> {
  const byId = new Map<string, Dated[]>();
  for (const { key, at, happenings } of runs) {
    for (const happening of happenings) {
      const others = byId.get(happening.id) ?? [];
      byId.set(happening.id, others);
      others.push({ ...happening, key, at });
    }
  }
  return byId;
}

/** The visits of each request, by its id. */
export function visitsById(visits: readonly Visit[]): Map<string, Visit[]> {
  const byId = new Map<string, Visit[]>();
  for (const visit of visits) {
    const others = byId.get(visit.terms.id) ?? [];
    byId.set(visit.terms.id, others);
    others.push(visit);
  }
  return byId;
}
