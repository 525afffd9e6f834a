import { Counter, Histogram, type Registry } from 'prom-client';

import type { Decision } from '../limiter/limiter.js';
import { firstNames } from './first-names.js';
import { outcomeLabels } from './outcomes.js';

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
    // The name of a lane has no space, so no two pairs make the same text.
    const isOwn = hasSeries(`${lane} ${rule}`);
    const labels = isOwn ? { rule, lane } : { rule: OTHER, lane: OTHER };
    decisions.inc({ ...labels, ...outcomeLabels(decision, isShadow) });
    if (decision.outcome === 'approved' && decision.waited) queueWait.observe(labels, seconds);
  };
}
