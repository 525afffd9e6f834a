import { calendarOf, hasSettableWindow, type Limits } from '../../../limiter/limits.js';
import type { KeyPolicy } from '../../../rules/policy.js';
import type { Match, RuleSet } from '../../../rules/rule-set.js';
import type { Rule } from '../../../rules/rule.js';

/** The source of a limit: a request's override, a rule by its number in the file, or the settings. */
export type Source =
  | { readonly by: 'request' }
  | { readonly by: 'rule'; readonly number: number; readonly name: string | undefined }
  | { readonly by: 'settings' };

/** Why the limits of a key are what they are. */
export interface ExplainedKey {
  readonly digest: string;
  /** The rules that apply, in their order. A field of a later rule replaces the same field of an earlier rule. */
  readonly rules: readonly ExplainedRule[];
  /** The limits by rules and settings. */
  readonly limits: Limits;
  readonly maxRequestsInQueue: number;
  /** Those of the key's own limit, with its algorithm, of its queue, and of its further limits. */
  readonly sources: Readonly<Record<keyof Overridden | 'algorithm' | 'further', Source>>;
  readonly requestsCanSet: {
    /** The greatest value that counts; undefined if none counts. */
    readonly maxRequests: number | undefined;
    readonly maxRequestsInQueue: number | undefined;
    readonly windowMillis: number | undefined;
    readonly holdMillis: number | undefined;
  };
  readonly isShadow: boolean;
  /** The names of its lanes, in their order; empty if it has none. */
  readonly lanes: readonly string[];
  readonly hasGroups: boolean;
}

interface ExplainedRule {
  readonly number: number;
  readonly name: string | undefined;
  readonly pattern: string;
  readonly isRegex: boolean;
  /** Its other fields, by their names in the file. */
  readonly effects: Readonly<Record<string, unknown>>;
}

type Overridden = Readonly<Record<'maxRequests' | 'maxRequestsInQueue' | 'windowMillis', boolean>>;

/** @param overridden which limits requests have set */
export function explainKey(key: string, rules: RuleSet, overridden: Overridden): ExplainedKey {
  const matches = rules.matching(key);
  const policy = rules.policyOf(key);
  const sourceOf = (field: keyof Rule): Source => lastWith(matches, field);
  return {
    digest: rules.digest,
    rules: matches.map(explainRule),
    limits: policy.limits,
    maxRequestsInQueue: policy.maxRequestsInQueue,
    sources: {
      windowMillis: overridden.windowMillis
        ? BY_REQUEST
        : sourceOf(calendarOf(policy.limits[0]) ? 'calendar' : 'window_millis'),
      maxRequests: overridden.maxRequests ? BY_REQUEST : sourceOf('max_requests_per_window'),
      maxRequestsInQueue: overridden.maxRequestsInQueue
        ? BY_REQUEST
        : sourceOf('max_requests_in_queue'),
      algorithm: sourceOf(calendarOf(policy.limits[0]) ? 'calendar' : 'algorithm'),
      further: sourceOf('limits'),
    },
    requestsCanSet: ceilingsOf(policy),
    isShadow: policy.isShadow,
    lanes:
      policy.queueOrder?.kind === 'lanes' ? policy.queueOrder.lanes.map(({ name }) => name) : [],
    hasGroups: policy.queueOrder?.kind === 'fair',
  };
}

const BY_REQUEST: Source = { by: 'request' };

function lastWith(matches: readonly Match[], field: keyof Rule): Source {
  const last = matches.findLast(({ rule }) => rule[field] !== undefined);
  return last ? { by: 'rule', number: last.index + 1, name: last.rule.name } : { by: 'settings' };
}

function explainRule({ index, rule }: Match): ExplainedRule {
  const { key_pattern: pattern, key_pattern_is_regex: isRegex, name, ...effects } = rule;
  return { number: index + 1, name, pattern, isRegex, effects };
}

function ceilingsOf(policy: KeyPolicy): ExplainedKey['requestsCanSet'] {
  const canSetWindow = policy.requestsCanSetWindow && hasSettableWindow(policy.limits[0]);
  return {
    maxRequests: policy.requestsCanSetRate ? policy.maxRequestsCeiling : undefined,
    maxRequestsInQueue: policy.requestsCanModQueue ? policy.maxRequestsInQueueCeiling : undefined,
    windowMillis: canSetWindow ? policy.windowMillisCeiling : undefined,
    holdMillis: policy.requestsCanHold ? policy.maxHoldMillis : undefined,
  };
}
