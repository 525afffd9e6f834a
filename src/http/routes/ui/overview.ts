import type { RequestHandler } from 'express';
import type { Logger } from 'pino';

import { UnavailableError } from '../../../limiter/errors.js';
import type { InstanceState, Limiter } from '../../../limiter/limiter.js';
import type { KeyPolicy } from '../../../rules/policy.js';
import type { Access } from '../../../service/callers/access.js';
import type { Slices } from '../../../service/deciding/slices.js';
import { BROWSER_HEADERS } from '../../replies/headers.js';
import { sendJson } from '../../replies/reply.js';
import { describeReplica, type ReplicaParts } from './describe-replica.js';
import { chooseDenied, chooseRows, refreshRows, type RowSources } from './key-rows.js';
import { KeySurvey } from './key-survey.js';
import type { Fleet } from '../../../service/fleet/fleet.js';
import { parseListQuery } from './ui-parameters.js';

/** How often a page polls: less often if there are more keys to choose from. */
const SHORTEST_INTERVAL_MILLIS = 2000;
const INTERVAL_PER_KEY_MILLIS = 0.3;
/** How many of the denied keys are shown, in any order of the other keys. */
const DENIED_SHOWN = 8;

export interface OverviewParts extends ReplicaParts {
  readonly limiter: Limiter;
  readonly policyOf: (key: string) => KeyPolicy;
  readonly access: Pick<Access, 'has' | 'mayUse' | 'mayUseAll'>;
  readonly fleet: Pick<Fleet, 'look' | 'historyOf'>;
  readonly slices: Pick<Slices, 'next'>;
  readonly logger: Logger;
}

/** `GET /ui/data`: the replicas, and the first keys in the order that the page asks for. */
export function overview(parts: OverviewParts): RequestHandler {
  const { limiter, access } = parts;
  const keySurvey = new KeySurvey(limiter, parts.logger);
  return async (request, response) => {
    const { sort, limit, search } = parseListQuery(request.query);
    const { context } = response.locals;
    const [{ states, ...survey }, replica, { replicas, denied: deniedKeys }] = await Promise.all([
      keySurvey.look(),
      describeReplica(parts),
      parts.fleet.look(),
    ]);
    const sources: RowSources = {
      states,
      recentDenials: deniedKeys,
      limitsOf: parts.policyOf,
      accepts: (key) => access.mayUse(key, context),
      slices: parts.slices,
      taker: context,
    };
    const chosen = await chooseRows(await searched(sources, search, limiter), sort, limit);
    const denied = await chooseDenied(sources, DENIED_SHOWN);
    const [keys, deniedNow] = await Promise.all([
      refreshRows(chosen.rows, sort, limiter),
      refreshRows(denied.rows, 'denied', limiter),
    ]);
    const { matching } = chosen;
    // The number of all keys is none of the business of a caller that may see some of them only.
    const [found, kept] = access.mayUseAll(context)
      ? [survey.keys, states.size]
      : [matching, matching];
    const body = {
      ...replica,
      ...{ replicas, matching, keys },
      survey: { ...survey, keys: found, kept },
    };
    sendJson(
      response,
      200,
      {
        ...body,
        deniedNow,
        deniedKeys: denied.matching,
        intervalMillis: Math.max(SHORTEST_INTERVAL_MILLIS, kept * INTERVAL_PER_KEY_MILLIS),
      },
      BROWSER_HEADERS,
    );
  };
}

/** Keeps the keys that contain a text, in any case of letters. A whole key is found even if it was not surveyed. */
async function searched(
  sources: RowSources,
  text: string,
  limiter: Pick<Limiter, 'inspect'>,
): Promise<RowSources> {
  if (text === '') return sources;
  const wanted = text.toLowerCase();
  const accepts = (key: string): boolean =>
    key.toLowerCase().includes(wanted) && sources.accepts(key);
  if (sources.states.has(text)) return { ...sources, accepts };
  const state = await unlessUnavailable(limiter.inspect(text));
  return { ...sources, unsurveyed: state, accepts };
}

async function unlessUnavailable(
  found: Promise<InstanceState | undefined>,
): Promise<InstanceState | undefined> {
  try {
    return await found;
  } catch (error) {
    if (error instanceof UnavailableError) return undefined;
    throw error;
  }
}
