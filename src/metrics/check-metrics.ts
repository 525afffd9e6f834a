import { Counter, Gauge, Histogram, type MetricValue, type Registry } from 'prom-client';

import type { Decision, OutagePolicy } from '../limiter/limiter.js';
import type { Metrics } from './metrics.js';

/** From 5 ms to 10 min. */
const QUEUE_WAIT_BUCKETS_SECONDS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600,
];

/** The most names of limits that have series of their own. */
const MAX_LIMIT_NAMES = 1000;
const OTHER_LIMITS = 'other';

/** Metrics of the checks and their outcomes. */
export function checkMetrics(
  registry: Registry,
  waiting: () => number,
): Pick<Metrics, 'decided' | 'failed' | 'decisionTotals'> {
  const registers = [registry];
  new Gauge({
    name: 'ratelimit_waiting',
    help: 'Checks waiting on this replica.',
    registers,
    collect() {
      this.set(waiting());
    },
  });
  const queueWait = new Histogram({
    name: 'ratelimit_queue_wait_seconds',
    help: 'Time from arrival to approval of checks approved from the queue.',
    buckets: QUEUE_WAIT_BUCKETS_SECONDS,
    registers,
  });
  const decisions = decisionCounter(registers);
  const count = countInto(decisions);
  const failures = failureCounter(registers);
  const countForRule = ruleCounter(registers);
  const countForLimit = limitCounter(registers);
  return {
    decided: (decision, seconds, { isShadow, ruleName }, limit) => {
      count(decision, isShadow);
      if (ruleName !== undefined) countForRule(ruleName, decision, isShadow);
      if (limit !== undefined) countForLimit(limit, isShadow);
      if (decision.outcome === 'approved' && decision.waited) queueWait.observe(seconds);
    },
    failed: countFailuresInto(failures),
    decisionTotals: async () => {
      const [byOutcome, failed] = await Promise.all([totalsOf(decisions), totalsOf(failures)]);
      const total = (outcome: Decision['outcome'] | 'shadowed'): number =>
        sum(byOutcome.filter(({ labels }) => labels.outcome === outcome));
      return {
        approved: total('approved'),
        denied: total('denied'),
        shadowed: total('shadowed'),
        withdrawn: total('withdrawn'),
        failed: sum(failed),
      };
    },
  };
}

async function totalsOf(counter: Counter): Promise<MetricValue<string>[]> {
  return (await counter.get()).values;
}

function sum(values: readonly MetricValue<string>[]): number {
  return values.reduce((total, { value }) => total + value, 0);
}

function decisionCounter(registers: Registry[]): Counter {
  return new Counter({
    name: 'ratelimit_decisions_total',
    help: 'Decisions on checks, by outcome, reason and decider.',
    labelNames: ['outcome', 'reason', 'decided_by'],
    registers,
  });
}

function countInto(counter: Counter): (decision: Decision, isShadow: boolean) => void {
  // The store is Redis, or the embedded limiter's own memory.
  const decidedBy = (who: 'store' | OutagePolicy) => ({
    capacity: fromTheStart(counter, 'approved', 'capacity', who),
    waited: fromTheStart(counter, 'approved', 'waited', who),
    limit_reached: fromTheStart(counter, 'denied', 'limit_reached', who),
    queue_full: fromTheStart(counter, 'denied', 'queue_full', who),
    turn_too_late: fromTheStart(counter, 'denied', 'turn_too_late', who),
    wait_expired: fromTheStart(counter, 'denied', 'wait_expired', who),
    too_many_hits: fromTheStart(counter, 'denied', 'too_many_hits', who),
    paused: fromTheStart(counter, 'denied', 'paused', who),
    shadowed: fromTheStart(counter, 'shadowed', 'limit_reached', who),
  });
  const series = {
    store: decidedBy('store'),
    allow: decidedBy('allow'),
    local: decidedBy('local'),
  };
  const withdrawn = fromTheStart(counter, 'withdrawn', 'client_disconnected', 'store');
  return (decision, isShadow) => {
    if (decision.outcome === 'withdrawn') {
      withdrawn.inc();
      return;
    }
    const by = series[decision.outagePolicy ?? 'store'];
    if (decision.outcome === 'denied' && isShadow) by.shadowed.inc();
    else if (decision.outcome === 'denied') by[decision.reason].inc();
    else if (decision.waited) by.waited.inc();
    else by.capacity.inc();
  };
}

/** Rule names come from the rules file, so there are few. */
function ruleCounter(
  registers: Registry[],
): (rule: string, decision: Decision, isShadow: boolean) => void {
  const counter = new Counter({
    name: 'ratelimit_rule_decisions_total',
    help: 'Decisions on checks, by named rule and outcome.',
    labelNames: ['rule', 'outcome'],
    registers,
  });
  return (rule, { outcome }, isShadow) => {
    counter.inc({ rule, outcome: outcome === 'denied' && isShadow ? 'shadowed' : outcome });
  };
}

/** The rules file may change any number of times, with other names each time. */
function limitCounter(registers: Registry[]): (limit: string, isShadow: boolean) => void {
  const counter = new Counter({
    name: 'ratelimit_limit_denials_total',
    help: 'Denials of checks whose keys have several limits, by the limit that denied.',
    labelNames: ['limit', 'outcome'],
    registers,
  });
  const names = new Set<string>();
  return (name, isShadow) => {
    if (names.size < MAX_LIMIT_NAMES) names.add(name);
    const limit = names.has(name) ? name : OTHER_LIMITS;
    counter.inc({ limit, outcome: isShadow ? 'shadowed' : 'denied' });
  };
}

function failureCounter(registers: Registry[]): Counter {
  return new Counter({
    name: 'ratelimit_failed_checks_total',
    help: 'Checks that failed with a 503, by reason.',
    labelNames: ['reason'],
    registers,
  });
}

function countFailuresInto(counter: Counter): Metrics['failed'] {
  const series = {
    store_unavailable: fromTheStart(counter, 'store_unavailable'),
    store_full: fromTheStart(counter, 'store_full'),
    key_full: fromTheStart(counter, 'key_full'),
    shutting_down: fromTheStart(counter, 'shutting_down'),
    too_many_waiters: fromTheStart(counter, 'too_many_waiters'),
    too_many_waiters_of_caller: fromTheStart(counter, 'too_many_waiters_of_caller'),
  };
  return (reason) => series[reason].inc();
}

/**
 * One series of a counter. It starts at 0, because rate() would miss the increment that creates the series. Its labels
 * are looked up once, and not at each check.
 */
function fromTheStart(counter: Counter, ...labels: string[]): Counter.Internal {
  const series = counter.labels(...labels);
  series.inc(0);
  return series;
}
