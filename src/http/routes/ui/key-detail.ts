import type { RequestHandler } from 'express';

import { UnavailableError } from '../../../limiter/errors.js';
import type { InstanceDetail, Limiter } from '../../../limiter/limiter.js';
import {
  calendarOf,
  capacityOf,
  hasSettableWindow,
  limitOfGroup,
} from '../../../limiter/limits.js';
import type { KeyPolicy } from '../../../rules/policy.js';
import type { Match, RuleSet } from '../../../rules/rule-set.js';
import type { Rule } from '../../../rules/rule.js';
import type { Rules } from '../../../rules/rules.js';
import type { Access } from '../../../service/callers/access.js';
import type { RequestContext } from '../../../service/request-context.js';
import type { Service } from '../../../service/service.js';
import { BROWSER_HEADERS, sendJson } from '../../replies/reply.js';
import type { HttpParts } from '../http-parts.js';
import { countsHeldOnly, shownLimits, statesOf } from './key-survey.js';
import { parseKeyIn } from './ui-parameters.js';

/** How many requests of the queue are shown one by one. */
const MOST_QUEUED = 50;

const NOT_OVERRIDDEN = { maxRequests: false, maxRequestsInQueue: false, windowMillis: false };

/** `GET /ui/data/key?key=`: everything about one key, and the sources of its limits, whether or not the key exists. */
export function keyDetail({ service, rules, replica }: HttpParts): RequestHandler {
  const { access, fleet } = service;
  return async (request, response) => {
    const key = parseKeyIn(request.query);
    const [{ detail, holdings, isCurrent }, view] = await Promise.all([
      examine(key, service),
      fleet.look(key),
    ]);
    const history = await fleet.historyOf(key, view);
    const explained = explainKey(key, rules.current, detail?.overridden ?? NOT_OVERRIDDEN);
    const run = view.denied.find((one) => one.key === key);
    const rates = view.byKey.get(key);
    const body = {
      key,
      found: detail !== undefined,
      isCurrent,
      replica,
      ...(detail && {
        ...named(detail, replica),
        limits: shownLimits(
          [...detail.limits, ...(detail.limitsOfGroups ?? [])],
          countsHeldOnly(detail, rates),
        ),
        groups: groupsOf(detail),
        states: statesOf(detail, { run, rates }),
      }),
      holdings,
      may: rightsOn(key, access, rules, response.locals.context),
      recentDenials: run,
      explained: { ...explained, limits: shownLimits(explained.limits) },
      history,
    };
    sendJson(response, 200, body, BROWSER_HEADERS);
  };
}

/**
 * The key, and whether that is current: if the store is down, it is what the replica that answers has decided alone since.
 * @throws UnavailableError if the store is down, and nobody decides instead
 */
async function examine(key: string, { store, limiter }: Service) {
  const examineIn = async (asked: Limiter, isCurrent: boolean) => {
    const [detail, holdings] = await Promise.all([
      asked.ask('examine', { key, mostQueued: MOST_QUEUED }),
      asked.ask('holdings', { key }),
    ]);
    return { detail, holdings, isCurrent };
  };
  try {
    return await examineIn(store, true);
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
    return examineIn(limiter, false);
  }
}

/** What the caller's scopes, and the rules of the key, allow. */
function rightsOn(
  key: string,
  access: Access,
  rules: Rules,
  context: RequestContext,
): Readonly<Record<'check' | 'pause' | 'endHolds', boolean>> {
  const check = access.has('check', context);
  const endHolds = access.has('configure', context);
  const pause = check && (endHolds || rules.current.policyOf(key).requestsCanPause);
  return { check, pause, endHolds };
}

/** What the fullest groups take of the limits that each group has to itself. */
function groupsOf({ groups = [], limitsOfGroups = [] }: InstanceDetail) {
  return groups.map(({ name, used }) => ({
    name,
    takes: limitsOfGroups.map((limit, i) => ({
      limit: limit.name,
      used: used[i] ?? 0,
      most: capacityOf(limitOfGroup(limit, name)),
    })),
  }));
}

/** The embedded limiter does not know the name of its replica. */
function named(detail: InstanceDetail, replica: string): InstanceDetail {
  const name = <T extends { readonly replica: string | undefined }>(one: T): T =>
    one.replica === undefined ? { ...one, replica } : one;
  return { ...detail, queue: detail.queue.map(name), replicas: detail.replicas.map(name) };
}

/**
 * Why the limits of a key are what they are: the rules that apply, in their order, and whether a request, a rule by its
 * number in the file, or the settings have set each.
 * @param overridden which limits requests have set
 */
function explainKey(key: string, rules: RuleSet, overridden: typeof NOT_OVERRIDDEN) {
  const matches = rules.matching(key);
  const policy = rules.policyOf(key);
  const { limits, queueOrder } = policy;
  const hasCalendar = calendarOf(limits[0]) !== undefined;
  const sourceOf = (field: keyof Rule, isOverridden = false) => {
    if (isOverridden) return { by: 'request' };
    // A field of a later rule replaces the same field of an earlier rule.
    const last = matches.findLast(({ rule }) => rule[field] !== undefined);
    return last ? { by: 'rule', number: last.index + 1, name: last.rule.name } : { by: 'settings' };
  };
  return {
    digest: rules.digest,
    rules: matches.map(explainRule),
    limits,
    maxRequestsInQueue: policy.maxRequestsInQueue,
    sources: {
      windowMillis: sourceOf(hasCalendar ? 'calendar' : 'window_millis', overridden.windowMillis),
      maxRequests: sourceOf('max_requests_per_window', overridden.maxRequests),
      maxRequestsInQueue: sourceOf('max_requests_in_queue', overridden.maxRequestsInQueue),
      algorithm: sourceOf(hasCalendar ? 'calendar' : 'algorithm'),
      further: sourceOf('limits'),
    },
    requestsCanSet: ceilingsOf(policy),
    isShadow: policy.isShadow,
    lanes: queueOrder?.lanes?.map(({ name }) => name) ?? [],
    hasGroups: queueOrder?.kind === 'fair',
  };
}

function explainRule({ index, rule }: Match) {
  const { key_pattern: pattern, key_pattern_is_regex: isRegex, name, ...effects } = rule;
  return { number: index + 1, name, pattern, isRegex, effects };
}

/** The greatest values that count; undefined if none counts. */
function ceilingsOf(policy: KeyPolicy) {
  const canSetWindow = policy.requestsCanSetWindow && hasSettableWindow(policy.limits[0]);
  return {
    maxRequests: policy.requestsCanSetRate ? policy.maxRequestsCeiling : undefined,
    maxRequestsInQueue: policy.requestsCanModQueue ? policy.maxRequestsInQueueCeiling : undefined,
    windowMillis: canSetWindow ? policy.windowMillisCeiling : undefined,
    holdMillis: policy.requestsCanHold ? policy.maxHoldMillis : undefined,
  };
}
