import { Counter, Gauge, Histogram, type MetricValue, type Registry } from 'prom-client';

import {
  type ApprovalObserver,
  type Decision,
  DENIAL_REASONS,
  type DenialReason,
  isVerdict,
  type OutagePolicy,
  type Verdict,
} from '../limiter/limiter.js';
import { policyName } from '../rules/policy.js';
import { FAILURE_REASONS, type Metrics } from './metrics.js';

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

/** The labels of verdicts, by name, in the order in which their series begin. */
const VERDICTS = {
  capacity: { outcome: 'approved', reason: 'capacity' },
  waited: { outcome: 'approved', reason: 'waited' },
  ...(Object.fromEntries(
    DENIAL_REASONS.map((reason) => [reason, { outcome: 'denied', reason }]),
  ) as Record<DenialReason, OutcomeLabels>),
  shadowed: { outcome: 'shadowed', reason: 'limit_reached' },
} as const satisfies Record<string, OutcomeLabels>;

/** The same of decisions that say what has become of a waiter. */
const OF_WAITERS = {
  withdrawn: { outcome: 'withdrawn', reason: 'client_disconnected' },
  told: { outcome: 'waiting', reason: 'answer_due' },
  left: { outcome: 'waiting', reason: 'client_disconnected' },
} as const satisfies Record<string, OutcomeLabels>;

function verdictName(verdict: Verdict, isShadow: boolean): keyof typeof VERDICTS {
  if (verdict.outcome === 'approved') return verdict.waited ? 'waited' : 'capacity';
  return isShadow ? 'shadowed' : verdict.reason;
}

function nameOfWaiter(decision: Exclude<Decision, Verdict>): keyof typeof OF_WAITERS {
  if (decision.outcome === 'withdrawn') return 'withdrawn';
  return decision.place ? 'told' : 'left';
}

function outcomeLabels(decision: Decision, isShadow: boolean): OutcomeLabels {
  return isVerdict(decision)
    ? VERDICTS[verdictName(decision, isShadow)]
    : OF_WAITERS[nameOfWaiter(decision)];
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

/** From 5 ms to 10 min. */
const QUEUE_WAIT_BUCKETS_SECONDS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600,
];

/** The most names of limits that have series of their own. */
const MAX_LIMIT_NAMES = 1000;
/** Stands for all names that have none. */
const OTHER = 'other';

export function checkMetrics(
  registry: Registry,
  waiting: () => number,
): Pick<Metrics, 'decided' | 'failed' | 'decisionTotals'> & ApprovalObserver {
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
  const series: LazySeries[] = [];
  const decisions = new Counter({
    name: 'ratelimit_decisions_total',
    help: 'Decisions on checks, by outcome, reason and decider.',
    labelNames: ['outcome', 'reason', 'decided_by'],
    registers,
    collect: () => {
      for (const one of series) one.update();
    },
  });
  const count = countInto((...labels) => {
    const one = new LazySeries(decisions.labels(...labels));
    series.push(one);
    return one;
  });
  const failures = reasonCounter(
    registry,
    'ratelimit_failed_checks_total',
    'Checks that failed with a 503, by reason.',
    FAILURE_REASONS,
  );
  const countForRule = ruleCounter(registers);
  const countForLimit = limitCounter(registers);
  const decidedForLane = laneMetrics(registers);
  const unclaimed = new Counter({
    name: 'ratelimit_unclaimed_approvals_total',
    help: 'Approvals kept for callers with keepMillis that did not come back in time.',
    registers,
  });
  return {
    unclaimed: (count) => unclaimed.inc(count),
    decided: (decision, seconds, policy, limit, lane) => {
      const { isShadow, ruleName } = policy;
      count(decision, isShadow);
      if (ruleName !== undefined) countForRule(ruleName, decision, isShadow);
      if (limit !== undefined) countForLimit(limit, isShadow);
      if (lane !== undefined) {
        decidedForLane(policyName(policy), lane, decision, seconds, isShadow);
      }
      if (decision.outcome === 'approved' && decision.waited) queueWait.observe(seconds);
    },
    failed: failures.count,
    decisionTotals: async () => {
      const [byOutcome, failed] = await Promise.all([decisions.get(), failures.values()]);
      const total = (outcome: Decision['outcome'] | 'shadowed'): number =>
        sum(byOutcome.values.filter(({ labels }) => labels.outcome === outcome));
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

function countInto(
  seriesOf: (outcome: string, reason: string, decidedBy: string) => LazySeries,
): (decision: Decision, isShadow: boolean) => void {
  const seriesOfEach = <Name extends string>(
    labels: Readonly<Record<Name, OutcomeLabels>>,
    who: 'store' | OutagePolicy,
  ) =>
    Object.fromEntries(
      Object.entries<OutcomeLabels>(labels).map(([name, { outcome, reason }]) => [
        name,
        seriesOf(outcome, reason, who),
      ]),
    ) as Record<Name, LazySeries>;
  // The store is Redis, or the embedded limiter's own memory.
  const ofVerdicts = {
    store: seriesOfEach(VERDICTS, 'store'),
    allow: seriesOfEach(VERDICTS, 'allow'),
    local: seriesOfEach(VERDICTS, 'local'),
  };
  const ofWaiters = seriesOfEach(OF_WAITERS, 'store');
  return (decision, isShadow) => {
    const series = isVerdict(decision)
      ? ofVerdicts[decision.outagePolicy ?? 'store'][verdictName(decision, isShadow)]
      : ofWaiters[nameOfWaiter(decision)];
    series.inc();
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
  return (rule, { outcome }, isShadow) =>
    counter.inc({ rule, outcome: outcome === 'denied' && isShadow ? 'shadowed' : outcome });
}

function limitCounter(registers: Registry[]): (limit: string, isShadow: boolean) => void {
  const counter = new Counter({
    name: 'ratelimit_limit_denials_total',
    help: 'Denials of checks whose keys have several limits, by the limit that denied.',
    labelNames: ['limit', 'outcome'],
    registers,
  });
  const hasSeries = firstNames(MAX_LIMIT_NAMES);
  return (name, isShadow) => {
    const limit = hasSeries(name) ? name : OTHER;
    counter.inc({ limit, outcome: isShadow ? 'shadowed' : 'denied' });
  };
}

/** The most lanes, each with the name of its rule, that have series of their own. */
const MAX_LANES = 500;

/** Metrics of the checks of keys with lanes. Groups have none, since callers choose their names. */
function laneMetrics(registers: Registry[]) {
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
    buckets: QUEUE_WAIT_BUCKETS_SECONDS,
    registers,
  });
  const hasSeries = firstNames(MAX_LANES);
  return (rule: string, lane: string, decision: Decision, seconds: number, isShadow: boolean) => {
    // The name of a lane has no space, so no two pairs make the same text.
    const isOwn = hasSeries(`${lane} ${rule}`);
    const labels = isOwn ? { rule, lane } : { rule: OTHER, lane: OTHER };
    decisions.inc({ ...labels, ...outcomeLabels(decision, isShadow) });
    if (decision.outcome === 'approved' && decision.waited) queueWait.observe(labels, seconds);
  };
}
