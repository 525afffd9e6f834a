import { Counter, Gauge, Histogram, type MetricValue, type Registry } from 'prom-client';

import { UNAVAILABLE_REASONS } from '../limiter/errors.js';
import {
  type Decision,
  DENIAL_REASONS,
  type DenialReason,
  isVerdict,
  type OutagePolicy,
} from '../limiter/limiter.js';
import { type KeyPolicy, policyName } from '../rules/policy.js';

/**
 * Counts by reason, of which all are known. Each series starts at 0, because rate() would miss the increment that creates
 * it.
 */
export function reasonCounter<Reason extends string>(
  registry: Registry,
  name: string,
  help: string,
  reasons: readonly Reason[],
) {
  const counter = new Counter({ name, help, labelNames: ['reason'], registers: [registry] });
  for (const reason of reasons) counter.inc({ reason }, 0);
  return {
    count: (reason: Reason): void => counter.inc({ reason }),
    values: async () => (await counter.get()).values,
  };
}

/** The labels that say what was decided, and why. */
interface OutcomeLabels {
  readonly outcome: string;
  readonly reason: string;
}

const CAPACITY: OutcomeLabels = { outcome: 'approved', reason: 'capacity' };
const WAITED: OutcomeLabels = { outcome: 'approved', reason: 'waited' };
const DENIED = Object.fromEntries(
  DENIAL_REASONS.map((reason) => [reason, { outcome: 'denied', reason }]),
) as Record<DenialReason, OutcomeLabels>;
const SHADOWED: OutcomeLabels = { outcome: 'shadowed', reason: 'limit_reached' };
const VERDICTS = [CAPACITY, WAITED, ...Object.values(DENIED), SHADOWED];

/** These say what has become of a waiter. */
const WITHDRAWN: OutcomeLabels = { outcome: 'withdrawn', reason: 'client_disconnected' };
const TOLD: OutcomeLabels = { outcome: 'waiting', reason: 'answer_due' };
const LEFT: OutcomeLabels = { outcome: 'waiting', reason: 'client_disconnected' };

/** @returns one of the objects above */
function outcomeLabels(decision: Decision, isShadow: boolean): OutcomeLabels {
  switch (decision.outcome) {
    case 'approved':
      return decision.waited ? WAITED : CAPACITY;
    case 'denied':
      return isShadow ? SHADOWED : DENIED[decision.reason];
    case 'withdrawn':
      return WITHDRAWN;
    case 'waiting':
      return decision.place ? TOLD : LEFT;
  }
}

/**
 * Returns a function that says whether a name is one of the first `most` names that it was asked about. The rules file may
 * change any number of times, with other names each time.
 */
function firstNames(most: number): (name: string) => boolean {
  const names = new Set<string>();
  return (name) => {
    if (names.size < most) names.add(name);
    return names.has(name);
  };
}

/** Why a check gets a 503. */
export const FAILURE_REASONS = [...UNAVAILABLE_REASONS, 'too_many_waiters_of_caller'] as const;
export type FailureReason = (typeof FAILURE_REASONS)[number];

/** From 5 ms to 10 min. */
const QUEUE_WAIT_BUCKETS_SECONDS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600,
];

/** The most names of limits that have series of their own. */
const MAX_LIMIT_NAMES = 1000;
/** The most lanes, each with the name of its rule, that have series of their own. */
const MAX_LANES = 500;
/** Stands for all names that have none. */
const OTHER = 'other';

export function checkMetrics(registry: Registry, waiting: () => number) {
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
  const decisions = new Counter({
    name: 'ratelimit_decisions_total',
    help: 'Decisions on checks, by outcome, reason and decider.',
    labelNames: ['outcome', 'reason', 'decided_by'],
    registers,
    collect: () => {
      for (const seriesOf of Object.values(decidedBy)) {
        for (const series of seriesOf.values()) series.update();
      }
    },
  });
  const seriesOf = (labels: readonly OutcomeLabels[], who: 'store' | OutagePolicy) =>
    new Map(
      labels.map((one) => [one, new LazySeries(decisions.labels({ ...one, decided_by: who }))]),
    );
  // The store is Redis, or the embedded limiter's own memory.
  const decidedBy = {
    store: seriesOf([...VERDICTS, WITHDRAWN, TOLD, LEFT], 'store'),
    allow: seriesOf(VERDICTS, 'allow'),
    local: seriesOf(VERDICTS, 'local'),
  };
  const failures = reasonCounter(
    registry,
    'ratelimit_failed_checks_total',
    'Checks that failed with a 503, by reason.',
    FAILURE_REASONS,
  );
  // Rule names come from the rules file, so there are few.
  const ofRules = new Counter({
    name: 'ratelimit_rule_decisions_total',
    help: 'Decisions on checks, by named rule and outcome.',
    labelNames: ['rule', 'outcome'],
    registers,
  });
  const ofLimits = new Counter({
    name: 'ratelimit_limit_denials_total',
    help: 'Denials of checks whose keys have several limits, by the limit that denied.',
    labelNames: ['limit', 'outcome'],
    registers,
  });
  const hasLimitSeries = firstNames(MAX_LIMIT_NAMES);
  // Groups have no metrics, since callers choose their names.
  const ofLanes = new Counter({
    name: 'ratelimit_lane_decisions_total',
    help: 'Decisions on checks of keys with lanes, by rule, lane, outcome and reason.',
    labelNames: ['rule', 'lane', 'outcome', 'reason'],
    registers,
  });
  const laneWait = new Histogram({
    name: 'ratelimit_lane_queue_wait_seconds',
    help: 'Time from arrival to approval of checks approved from a lane of a queue, by rule and lane.',
    labelNames: ['rule', 'lane'],
    buckets: QUEUE_WAIT_BUCKETS_SECONDS,
    registers,
  });
  const hasLaneSeries = firstNames(MAX_LANES);
  const unclaimed = new Counter({
    name: 'ratelimit_unclaimed_approvals_total',
    help: 'Approvals kept for callers with keepMillis that did not come back in time.',
    registers,
  });
  return {
    unclaimed: (count: number): void => unclaimed.inc(count),
    /**
     * One check was decided.
     * @param seconds from its arrival to its decision
     * @param policy of its key
     * @param limit the name of the limit that denied it, if its key has several
     * @param lane the name of its lane, if its key has lanes
     */
    decided: (
      decision: Decision,
      seconds: number,
      policy: Pick<KeyPolicy, 'isShadow' | 'ruleName'>,
      limit?: string,
      lane?: string,
    ): void => {
      const waited = decision.outcome === 'approved' && decision.waited;
      const labels = outcomeLabels(decision, policy.isShadow);
      const { outcome } = labels;
      const { outagePolicy = 'store' } = isVerdict(decision) ? decision : {};
      decidedBy[outagePolicy].get(labels)?.inc();
      if (waited) queueWait.observe(seconds);
      if (policy.ruleName !== undefined) ofRules.inc({ rule: policy.ruleName, outcome });
      if (limit !== undefined) {
        ofLimits.inc({ limit: hasLimitSeries(limit) ? limit : OTHER, outcome });
      }
      if (lane === undefined) return;
      const rule = policyName(policy);
      // The name of a lane has no space, so no two pairs make the same text.
      const hasSeries = hasLaneSeries(`${lane} ${rule}`);
      const where = hasSeries ? { rule, lane } : { rule: OTHER, lane: OTHER };
      ofLanes.inc({ ...where, ...labels });
      if (waited) laneWait.observe(where, seconds);
    },
    failed: failures.count,
    /** How many checks had each outcome since the start. */
    decisionTotals: async () => {
      const [byOutcome, failed] = await Promise.all([decisions.get(), failures.values()]);
      const total = (outcome: Decision['outcome'] | 'shadowed'): number =>
        sum(byOutcome.values.filter(({ labels }) => labels.outcome === outcome));
      return {
        approved: total('approved'),
        denied: total('denied'),
        shadowed: total('shadowed'),
        withdrawn: total('withdrawn'),
        /** Answered with a 503. */
        failed: sum(failed),
      };
    },
  };
}

function sum(values: readonly MetricValue<string>[]): number {
  return values.reduce((total, { value }) => total + value, 0);
}

/**
 * A series that is counted in a number of its own, and brought up to date when the counter is read. prom-client looks a
 * series up at each increment, which takes a hundredth of the time of a check.
 */
class LazySeries {
  #since = 0;

  /** It starts at 0, because rate() would miss the increment that creates it. */
  constructor(private readonly series: Counter.Internal) {
    series.inc(0);
  }

  inc(): void {
    this.#since += 1;
  }

  update(): void {
    this.series.inc(this.#since);
    this.#since = 0;
  }
}
