import { Counter, Histogram, type Registry } from 'prom-client';

import { type Decision, isVerdict } from '../limiter/limiter.js';
import { firstNames } from './first-names.js';

/** The most lanes, each with the name of its rule, that have series of their own. */
const MAX_LANES = 500;
const OTHER = 'other';

/** One check of a key with lanes was decided. `seconds`: from its arrival to its decision. */
type LaneDecided = (
  rule: string,
  lane: string,
  decision: Decision,
  seconds: number,
  isShadow: boolean,
) => void;

/** Metrics of the checks of keys with lanes. Groups have none, since callers choose their names. */
export function laneMetrics(registry: Registry, buckets: readonly number[]): LaneDecided {
  const registers = [registry];
  const decisions = new Counter({
    name: 'ratelimit_lane_decisions_total',
    help: 'Decisions on checks of keys with lanes, by rule, lane, outcome and reason.',
    labelNames: ['rule', 'lane', 'outcome', 'reason'],
    registers,
  });
  const queueWait = new Histogram({
    name: 'ratelimit_lane_queue_wait_seconds',
    help: 'Time from arrival to approval of checks approved from a lane of a queue, by rule and lane.',
    labelNames: ['rule', 'lane'],
    buckets: [...buckets],
    registers,
  });
  const hasSeries = firstNames(MAX_LANES);
  return (rule, lane, decision, seconds, isShadow) => {
    const isOwn = hasSeries(JSON.stringify([rule, lane]));
    const labels = isOwn ? { rule, lane } : { rule: OTHER, lane: OTHER };
    decisions.inc({ ...labels, ...outcomeOf(decision, isShadow) });
    if (decision.outcome === 'approved' && decision.waited) queueWait.observe(labels, seconds);
  };
}

/** The labels that `ratelimit_decisions_total` has for a decision as well. */
function outcomeOf(decision: Decision, isShadow: boolean): { outcome: string; reason: string } {
  const { outcome } = decision;
  if (!isVerdict(decision)) {
    const isTold = decision.outcome === 'waiting' && decision.place !== undefined;
    return { outcome, reason: isTold ? 'answer_due' : 'client_disconnected' };
  }
  if (decision.outcome === 'approved') {
    return { outcome, reason: decision.waited ? 'waited' : 'capacity' };
  }
  if (isShadow) return { outcome: 'shadowed', reason: 'limit_reached' };
  return { outcome, reason: decision.reason };
}
