import type { RequestHandler } from 'express';
import type { Logger } from 'pino';

import { systemClock } from '../../../common/clock.js';
import { UnavailableError } from '../../../limiter/errors.js';
import type { InstanceState, Limiter } from '../../../limiter/limiter.js';
import type { KeyPolicy } from '../../../rules/policy.js';
import type { Access } from '../../../service/callers/access.js';
import type { Slices } from '../../../service/deciding/slices.js';
import { BROWSER_HEADERS } from '../../replies/headers.js';
import { sendJson } from '../../replies/reply.js';
import { describeReplica, type ReplicaParts } from './describe-replica.js';
import { chooseRows, refreshRows, type RowSources } from './key-rows.js';
import { KeySurvey } from './key-survey.js';
import { knowledgeOf } from './knowledge.js';
import type { Fleet } from '../../../service/fleet/fleet.js';
import { parseListQuery } from './ui-parameters.js';

/** How often a page polls: less often if there are more keys to choose from. */
const SHORTEST_INTERVAL_MILLIS = 2000;
const INTERVAL_PER_KEY_MILLIS = 0.3;

export interface OverviewParts extends ReplicaParts {
  /** Shows what all replicas have decided, or what they had when it was up. */
  readonly store: Limiter;
  readonly policyOf: (key: string) => KeyPolicy;
  readonly access: Pick<Access, 'has' | 'mayUse' | 'mayUseAll'>;
  readonly fleet: Pick<Fleet, 'look' | 'historyOf'>;
  readonly slices: Pick<Slices, 'next'>;
  readonly logger: Logger;
}

/** `GET /ui/data`: the replicas, and the keys that need a person most. */
export function overview(parts: OverviewParts): RequestHandler {
  const { store, access } = parts;
  const keySurvey = new KeySurvey(store, parts.logger);
  return async (request, response) => {
    const choice = parseListQuery(request.query);
    const { context } = response.locals;
    const [survey, replica, fleet] = await Promise.all([
      keySurvey.look(),
      describeReplica(parts),
      parts.fleet.look(),
    ]);
    const { states, ...surveyed } = survey;
    const sources: RowSources = {
      states,
      unsurveyed: await unsurveyed(states, choice.search, store),
      recentDenials: fleet.denied,
      limitsOf: parts.policyOf,
      maySee: (key) => access.mayUse(key, context),
      slices: parts.slices,
      taker: context,
    };
    const { rows, keys: kept, counts, matching } = await chooseRows(sources, choice);
    const keys = await refreshRows(rows, store, (key, state) => {
      keySurvey.update(key, state);
    });
    // The number of all keys is none of the business of a caller that may see some of them only.
    const found = access.mayUseAll(context) ? Math.max(survey.keys, kept) : kept;
    const body = {
      ...replica,
      ...knowledgeOf(fleet, survey, keys, systemClock.now()),
      replicas: fleet.replicas,
      survey: { ...surveyed, keys: found, kept },
      ...{ counts, matching, keys },
      intervalMillis: Math.max(SHORTEST_INTERVAL_MILLIS, kept * INTERVAL_PER_KEY_MILLIS),
    };
    sendJson(response, 200, body, BROWSER_HEADERS);
  };
}

/** Finds the key that has a whole text as its name, if it was not surveyed. */
async function unsurveyed(
  states: RowSources['states'],
  text: string,
  store: Pick<Limiter, 'inspect'>,
): Promise<InstanceState | undefined> {
  if (text === '' || states.has(text)) return undefined;
  try {
    return await store.inspect(text);
  } catch (error) {
    if (error instanceof UnavailableError) return undefined;
    throw error;
  }
}
