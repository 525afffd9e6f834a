import type { Run } from '../key-history.js';
import { type Usage, usageOf } from '../usage.js';
import type { Evidence } from './evidence.js';

/** What the rounding of doubles may add up to. */
const EPSILON = 1e-6;
const LEAVES = new Set(['granted', 'served', 'withdrawn']);
/** A timer of a replica serves the queue when there is room; if the replica fails, another does. */
const SERVED_WITHIN_MILLIS = 1500;

type Judged = Pick<Evidence, 'keys' | 'runs' | 'terms' | 'lateMillis'>;

/** Describes approvals above the maximum, by what counted after each script that approved. */
export function overfull(evidence: Judged): string[] {
  const usages = usagesOf(evidence);
  return evidence.runs.flatMap((run) => {
    const usage = usages.get(run.key)!;
    const approves = count(usage, run, evidence.terms);
    const used = usage.usedAt(run.at);
    if (!approves || used <= usage.capacity + EPSILON) return [];
    return [`${run.key}: ${used} counted at ${run.at}, and not ${usage.capacity}`];
  });
}

/**
 * Describes waiters at the head of a queue that were not served although there was room for them. So what has lapsed or
 * was given back counts for nobody any more.
 */
export function unserved({ lateMillis, ...evidence }: Judged): string[] {
  const usages = usagesOf(evidence);
  const queues = new Map<string, Map<string, number>>();
  /** The heads that fit, and since when. */
  const fitting = new Map<string, { id: string; since: number; isTold: boolean }>();
  return evidence.runs.flatMap((run) => {
    const { key, at } = run;
    const [usage, queue] = [usages.get(key)!, queues.get(key) ?? new Map<string, number>()];
    queues.set(key, queue);
    const id = headOf(queue);
    const hits = id === undefined ? 0 : hitsOf(id, evidence.terms);
    const fits = id !== undefined && usage.usedAt(at) + hits <= usage.capacity;
    const before = fitting.get(key);
    const head = before?.id === id && before ? before : { id: id!, since: at, isTold: false };
    if (fits) fitting.set(key, head);
    else fitting.delete(key);
    count(usage, run, evidence.terms);
    follow(queue, run);
    const waitedMillis = at - head.since;
    const isLate =
      fits &&
      !head.isTold &&
      waitedMillis > SERVED_WITHIN_MILLIS &&
      waitedMillis - lateMillis(head.since, at) > SERVED_WITHIN_MILLIS;
    if (!isLate || !queue.has(head.id)) return [];
    head.isTold = true;
    return [`${key}: ${head.id} waited at the head from ${head.since} to ${at} with room for it`];
  });
}

function usagesOf({ keys }: Pick<Evidence, 'keys'>): Map<string, Usage> {
  return new Map(keys.map((key) => [key.key, usageOf(key)]));
}

function hitsOf(id: string, terms: Evidence['terms']): number {
  return terms.get(id)?.hits ?? 1;
}

/** Counts what a script did. Returns whether it approved anything. */
function count(usage: Usage, run: Run, terms: Evidence['terms']): boolean {
  const { at, windowStart, happenings } = run;
  if (windowStart !== undefined) usage.beginWindow(windowStart);
  let approves = false;
  for (const happening of happenings) {
    const { id } = happening;
    const hits = hitsOf(id, terms);
    switch (happening.what) {
      case 'granted':
      case 'approved':
        usage.approve(id, hits, at, happening.hold?.lapsesAt);
        approves = true;
        break;
      case 'served':
        usage.approve(id, hits, at);
        approves = true;
        break;
      case 'confirmed':
        usage.confirm(id, hits, at, happening.hold?.lapsesAt);
        break;
      case 'lapsed':
        if (happening.isGrant) usage.giveBack(id, at);
        break;
      case 'ended':
        usage.giveBack(id, at);
        break;
      default:
    }
  }
  return approves;
}

/** The id with the lowest ticket. */
function headOf(queue: ReadonlyMap<string, number>): string | undefined {
  let head: string | undefined;
  let lowest = Infinity;
  for (const [id, ticket] of queue) {
    if (ticket < lowest) [head, lowest] = [id, ticket];
  }
  return head;
}

function follow(queue: Map<string, number>, { happenings }: Run): void {
  for (const happening of happenings) {
    if (happening.what === 'joined') queue.set(happening.id, happening.ticket);
    else if (LEAVES.has(happening.what)) queue.delete(happening.id);
  }
}
