import type { RequestHandler } from 'express';

import { systemClock } from '../../../common/clock.js';
import { UnavailableError } from '../../../limiter/errors.js';
import type { InstanceState, Limiter, Operator } from '../../../limiter/limiter.js';
import type { FleetView } from '../../../service/fleet/fleet.js';
import { BROWSER_HEADERS, sendJson } from '../../replies/reply.js';
import type { HttpParts } from '../http-parts.js';
import { chooseRows, countedAgain, type KeyRow, refreshRows } from './key-rows.js';
import { countsHeldOnly, KeySurvey, shownLimits, type Survey } from './key-survey.js';
import { parseListQuery } from './ui-parameters.js';

/** How often a page polls: less often if there are more keys to choose from. */
const SHORTEST_INTERVAL_MILLIS = 2000;
const INTERVAL_PER_KEY_MILLIS = 0.3;

/** `GET /ui/data`: the replicas, and the keys that need a person most. */
export function overview(parts: HttpParts): RequestHandler {
  // The store shows what all replicas have decided, or what they had when it was up.
  const { service } = parts;
  const { store, access } = service;
  const keySurvey = new KeySurvey(store, parts.logger);
  return async (request, response) => {
    const choice = parseListQuery(request.query);
    const { context } = response.locals;
    const [survey, replica, fleet, isUp] = await Promise.all([
      keySurvey.look(),
      describeReplica(parts),
      service.fleet.look(),
      answers(store),
    ]);
    const { states, ...surveyed } = survey;
    const newer = await unsurveyed(states, choice.search, store);
    const chosen = await chooseRows(service, context, states, newer, fleet, choice);
    const keys = await refreshRows(chosen.rows, store, choice.order, (key, state) =>
      keySurvey.update(key, state),
    );
    const { keys: kept, waiting, counts, matching } = countedAgain(chosen, keys);
    // The number of all keys is none of the business of a caller that may see some of them only.
    const found = access.mayUseAll(context) ? Math.max(survey.keys, kept) : kept;
    const body = {
      ...replica,
      storeState: storeStateOf(isUp, fleet, keys),
      ...knowledgeOf(fleet, survey, keys, systemClock.now()),
      replicas: fleet.replicas,
      /** All decisions a second with their series, and all who wait: of the moment of the rows, and what these add up to. */
      total: { ...fleet.total, waiting },
      survey: { ...surveyed, keys: found, kept },
      ...{ counts, matching },
      keys: keys.map((row) => ({
        ...row,
        limits: shownLimits(row.limits, countsHeldOnly(row, row.rates)),
      })),
      intervalMillis: Math.max(SHORTEST_INTERVAL_MILLIS, kept * INTERVAL_PER_KEY_MILLIS),
    };
    sendJson(response, 200, body, BROWSER_HEADERS);
  };
}

/** Whether the store answers now. */
async function answers(store: Pick<Limiter, 'ping'>): Promise<boolean> {
  try {
    await store.ping();
    return true;
  } catch (error) {
    if (error instanceof UnavailableError) return false;
    throw error;
  }
}

/** What this poll has found of the store: in a cluster, a part of it may be down. */
function storeStateOf(
  isUp: boolean,
  fleet: Pick<FleetView, 'isCurrent'>,
  rows: readonly Pick<KeyRow, 'isCurrent'>[],
): 'up' | 'partly down' | 'down' {
  if (!isUp) return 'down';
  return fleet.isCurrent && rows.every(({ isCurrent }) => isCurrent) ? 'up' : 'partly down';
}

/** Finds the key that has a whole text as its name, if it was not surveyed. */
async function unsurveyed(
  states: Survey['states'],
  text: string,
  store: Operator<'inspect'>,
): Promise<InstanceState | undefined> {
  if (text === '' || states.has(text)) return undefined;
  try {
    return await store.ask('inspect', { key: text });
  } catch (error) {
    if (error instanceof UnavailableError) return undefined;
    throw error;
  }
}

export type DescribedReplica = Readonly<Awaited<ReturnType<typeof describeReplica>>>;

/**
 * What the head of the page shows: the replica that answers. Behind a load balancer, another one may answer the next
 * request.
 */
async function describeReplica({ rules, settings, replica, readiness }: HttpParts) {
  const { reasons, remarks } = await readiness.assess();
  return {
    replica,
    store: settings.REDIS_URL === undefined ? 'memory' : `redis ${settings.REDIS_MODE}`,
    /** As `/readyz` reports them; empty if there are none. */
    problems: [...reasons, ...remarks],
    rules: {
      count: rules.current.rules.length,
      digest: rules.current.digest,
      isStale: rules.isStale,
    },
  };
}

export type Knowledge = Readonly<ReturnType<typeof knowledgeOf>>;

/**
 * Whether the figures of an answer are those of all replicas as of now.
 * @param now the time of the answer, in milliseconds since 1970
 */
export function knowledgeOf(
  fleet: Pick<FleetView, 'isCurrent' | 'readAt'>,
  survey: Pick<Survey, 'isComplete' | 'ageMillis' | 'failure'>,
  rows: readonly Pick<KeyRow, 'isCurrent'>[],
  now: number,
) {
  const isListed = survey.failure !== 'unavailable' && rows.every(({ isCurrent }) => isCurrent);
  const surveyedAt = survey.isComplete ? now - survey.ageMillis : undefined;
  const moments = [fleet.isCurrent ? now : fleet.readAt, isListed ? now : surveyedAt];
  const isKnown = moments.every((moment) => moment !== undefined);
  return {
    /** False if the store could not be read, in whole or in part: some figures are as they were known last. */
    isComplete: fleet.isCurrent && isListed,
    /** No figure is older. Null if this replica could not read the store since it is looked at. */
    asOfMillis: isKnown ? Math.floor(Math.min(...moments)) : null,
    nowMillis: Math.floor(now),
  };
}
