import type { RequestHandler } from 'express';

import { UnavailableError } from '../../../limiter/errors.js';
import type { Holding, InstanceDetail, Operator } from '../../../limiter/limiter.js';
import { calendarOf, hasSettableWindow, type Limits } from '../../../limiter/limits.js';
import type { KeyPolicy } from '../../../rules/policy.js';
import type { Match, RuleSet } from '../../../rules/rule-set.js';
import type { Rule } from '../../../rules/rule.js';
import type { Rules } from '../../../rules/rules.js';
import type { Access } from '../../../service/callers/access.js';
import type { Fleet } from '../../../service/fleet/fleet.js';
import type { RequestContext } from '../../../service/request-context.js';
import { BROWSER_HEADERS, sendJson } from '../../replies/reply.js';
import { shownLimits, statesOf } from './key-survey.js';
import { parseKeyIn } from './ui-parameters.js';

/** How many requests of the queue are shown one by one. */
const MOST_QUEUED = 50;

const NOT_OVERRIDDEN = { maxRequests: false, maxRequestsInQueue: false, windowMillis: false };

type ExaminedLimiter = Operator<'examine' | 'holdings'>;

interface DetailParts {
  readonly limiter: ExaminedLimiter;
  /** Shows what all replicas have decided. */
  readonly store: ExaminedLimiter;
  readonly access: Pick<Access, 'has'>;
  readonly rules: Pick<Rules, 'current'>;
  readonly fleet: Pick<Fleet, 'look' | 'historyOf'>;
  readonly replica: string;
}

/** `GET /ui/data/key?key=`: everything about one key, and the sources of its limits, whether or not the key exists. */
export function keyDetail(parts: DetailParts): RequestHandler {
  const { access, rules, fleet, replica } = parts;
  return async (request, response) => {
    const key = parseKeyIn(request.query);
    const [{ detail, holdings, isCurrent }, view] = await Promise.all([
      examine(key, parts),
      fleet.look(key),
    ]);
    const history = await fleet.historyOf(key, view);
    const explained = explainKey(key, rules.current, detail?.overridden ?? NOT_OVERRIDDEN);
    const run = view.denied.find((one) => one.key === key);
    const body = {
      key,
      found: detail !== undefined,
      isCurrent,
      replica,
      ...(detail && {
        ...named(detail, replica),
        limits: shownLimits(detail.limits),
        states: statesOf(detail, run),
      }),
      holdings,
      may: rightsOn(key, { access, rules }, response.locals.context),
      recentDenials: run,
      explained: { ...explained, limits: shownLimits(explained.limits) },
      history,
    };
    sendJson(response, 200, body, BROWSER_HEADERS);
  };
}

interface Examined {
  readonly detail: InstanceDetail | undefined;
  readonly holdings: readonly Holding[];
  /** False if the store is down, and this is what the replica that answers has decided alone since. */
  readonly isCurrent: boolean;
}

/** @throws UnavailableError if the store is down, and nobody decides instead */
async function examine(key: string, { store, limiter }: DetailParts): Promise<Examined> {
  try {
    return { ...(await examineIn(store, key)), isCurrent: true };
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
    return { ...(await examineIn(limiter, key)), isCurrent: false };
  }
}

async function examineIn(
  limiter: ExaminedLimiter,
  key: string,
): Promise<Pick<Examined, 'detail' | 'holdings'>> {
  const [detail, holdings] = await Promise.all([
    limiter.ask('examine', { key, mostQueued: MOST_QUEUED }),
    limiter.ask('holdings', { key }),
  ]);
  return { detail, holdings };
}

/** What the caller's scopes, and the rules of the key, allow. */
function rightsOn(
  key: string,
  { access, rules }: Pick<DetailParts, 'access' | 'rules'>,
  context: RequestContext,
): Readonly<Record<'check' | 'pause' | 'endHolds', boolean>> {
  const check = access.has('check', context);
  const endHolds = access.has('configure', context);
  const pause = check && (endHolds || rules.current.policyOf(key).requestsCanPause);
  return { check, pause, endHolds };
}

/** The embedded limiter does not know the name of its replica. */
function named(detail: InstanceDetail, replica: string): InstanceDetail {
  const name = <T extends { readonly replica: string | undefined }>(one: T): T =>
    one.replica === undefined ? { ...one, replica } : one;
  return { ...detail, queue: detail.queue.map(name), replicas: detail.replicas.map(name) };
}

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
function explainKey(key: string, rules: RuleSet, overridden: Overridden): ExplainedKey {
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
