import { createHash } from 'node:crypto';

import { RecentAnswers } from '../common/collections.js';
import { type CalendarOf, loadCalendars } from '../limiter/calendar/time-zones.js';
import { DEFAULT_ALGORITHM } from '../limiter/kinds/kinds.js';
import { calendarOf, type Limit, ownLimit } from '../limiter/limits.js';
import type { QueueOrder } from '../limiter/queue-order.js';
import { kindIn } from './algorithm-fields.js';
import { KeyPatterns } from './key-patterns.js';
import { orderIn } from './queue-fields.js';
import { completed, type DeclaredPolicy, type KeyPolicy } from './policy.js';
import type { FurtherLimitRule, Rule } from './rule.js';

/** The most keys whose policies are kept, in each of two generations. */
const KEPT_KEYS = 100_000;
/** The most combinations of rules whose policies are shared. */
const KEPT_POLICIES = 10_000;
/** Characters of the digest: enough to distinguish rules, few enough to compare by eye. */
const DIGEST_LENGTH = 12;

/** A rule that applies to a key, and its position in the file, from 0 on. */
export interface Match {
  readonly index: number;
  readonly rule: Rule;
}

/** Rules, and the defaults for keys that no rule matches. Every matching rule applies, in the order of the file. */
export class RuleSet {
  /** Identifies the rules, whatever their format and spacing: replicas with the same rules have the same. */
  readonly digest: string;
  readonly #patterns: KeyPatterns;
  /** What each rule says of the order between waiters. A map of weights may be large, and is shared by all policies. */
  readonly #orders: readonly (QueueOrder | undefined)[];
  /** One object for all keys that the same rules match. */
  readonly #policies = new Map<string, KeyPolicy>();
  readonly #recent = new RecentAnswers((key) => this.#find(key), KEPT_KEYS);

  /** The rules, and the calendars that they name. */
  static async load(rules: readonly Rule[], defaults: KeyPolicy): Promise<RuleSet> {
    const haveCalendar = rules.some((rule) => hasCalendar(rule) || rule.limits?.some(hasCalendar));
    return new RuleSet(rules, defaults, haveCalendar ? await loadCalendars() : undefined);
  }

  /** @param calendars required if a rule has a calendar */
  constructor(
    readonly rules: readonly Rule[],
    private readonly defaults: KeyPolicy,
    private readonly calendars: CalendarOf = noCalendars,
  ) {
    this.digest = digestOf(rules);
    this.#orders = rules.map(({ queue }) => queue && orderIn(queue));
    this.#patterns = new KeyPatterns(rules);
  }

  /** What applies to a key. After the first time this takes one look-up in a map. */
  policyOf(key: string): KeyPolicy {
    return this.rules.length === 0 ? this.defaults : this.#recent.of(key);
  }

  /** The rules that apply to a key, in their order. */
  matching(key: string): readonly Match[] {
    return this.#patterns.matching(key).flatMap((index) => {
      const rule = this.rules[index];
      return rule ? [{ index, rule }] : [];
    });
  }

  #find(key: string): KeyPolicy {
    const matches = this.matching(key);
    const name = matches.map(({ index }) => index).join();
    let policy = this.#policies.get(name);
    if (!policy) {
      policy = completed(
        matches.reduce<DeclaredPolicy>(
          (before, { index, rule }) => apply(before, rule, this.#orders[index], this.calendars),
          this.defaults,
        ),
      );
      if (this.#policies.size >= KEPT_POLICIES) this.#policies.clear();
      this.#policies.set(name, policy);
    }
    return policy;
  }
}

function hasCalendar({ calendar }: Pick<Rule, 'calendar'>): boolean {
  return calendar !== undefined;
}

const noCalendars: CalendarOf = () => {
  throw new Error('rules with calendars are made by RuleSet.load');
};

function apply(
  before: DeclaredPolicy,
  rule: Rule,
  order: QueueOrder | undefined,
  calendars: CalendarOf,
): DeclaredPolicy {
  const [own, ...further] = before.limits;
  const queueOrder = rule.queue ? order : before.queueOrder;
  return {
    limits: [
      applyToOwn(own, rule, calendars),
      ...(rule.limits?.map((limit) => furtherLimit(limit, calendars)) ??
        further.filter((limit) => countsListOf(limit, queueOrder))),
    ],
    queueOrder,
    maxRequestsInQueue: rule.max_requests_in_queue ?? before.maxRequestsInQueue,
    requestsCanSetRate: rule.requests_can_set_rate ?? before.requestsCanSetRate,
    requestsCanModQueue: rule.requests_can_mod_queue ?? before.requestsCanModQueue,
    maxRequestsCeiling: rule.max_requests_ceiling ?? before.maxRequestsCeiling,
    maxRequestsInQueueCeiling:
      rule.max_requests_in_queue_ceiling ?? before.maxRequestsInQueueCeiling,
    requestsCanSetWindow: rule.requests_can_set_window ?? before.requestsCanSetWindow,
    windowMillisCeiling: rule.window_millis_ceiling ?? before.windowMillisCeiling,
    requestsCanPause: rule.requests_can_pause ?? before.requestsCanPause,
    requestsCanHold: rule.requests_can_hold ?? before.requestsCanHold,
    maxHoldMillis: rule.max_hold_millis ?? before.maxHoldMillis,
    maxCorrectedHits: rule.max_corrected_hits ?? before.maxCorrectedHits,
    deniedTakesRest: rule.denied_takes_rest ?? before.deniedTakesRest,
    maxWaitMillis: rule.max_wait_millis ?? before.maxWaitMillis,
    isShadow: rule.shadow ?? before.isShadow,
    isKnown: true,
    hasRuledMaximum: before.hasRuledMaximum || rule.max_requests_per_window !== undefined,
    ruleName: rule.name ?? before.ruleName,
  };
}

/** Whether a limit of an earlier rule can count any check of a key with this order. */
function countsListOf({ lanes, perGroup }: Limit, order: QueueOrder | undefined): boolean {
  if (perGroup) return order?.kind === 'fair';
  if (!lanes) return true;
  return order?.kind === 'lanes' && order.lanes.some(({ name }) => lanes.includes(name));
}

/** A rule with a `window_millis` alone replaces a calendar. */
function applyToOwn(own: Limit, rule: Rule, calendars: CalendarOf): Limit {
  const endsCalendar = rule.window_millis !== undefined && calendarOf(own) !== undefined;
  const before = endsCalendar ? DEFAULT_ALGORITHM : own.algorithm;
  const { algorithm = before, windowMillis = rule.window_millis } = kindIn(rule, calendars) ?? {};
  return ownLimit(
    windowMillis ?? own.windowMillis,
    rule.max_requests_per_window ?? own.maximum,
    algorithm,
  );
}

function furtherLimit(limit: FurtherLimitRule, calendars: CalendarOf): Limit {
  // The schema has made sure that there is a length or a calendar.
  const { algorithm = DEFAULT_ALGORITHM, windowMillis = limit.window_millis ?? 0 } =
    kindIn(limit, calendars) ?? {};
  return {
    name: limit.name,
    windowMillis,
    // The schema has made sure that there is one of the two.
    maximum: limit.max_requests_per_window ?? limit.max_hits_per_window ?? 0,
    counts: limit.max_requests_per_window === undefined ? 'hits' : 'requests',
    algorithm,
    keepsReleased: !limit.releases_return,
    lanes: limit.lanes,
    ...(limit.per && { perGroup: { maxima: new Map(Object.entries(limit.maxima ?? {})) } }),
  };
}

function digestOf(rules: readonly Rule[]): string {
  const fields = rules.map((rule) => Object.entries(rule).sort(([a], [b]) => (a < b ? -1 : 1)));
  return createHash('sha256').update(JSON.stringify(fields)).digest('hex').slice(0, DIGEST_LENGTH);
}
