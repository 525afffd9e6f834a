import type { Response } from 'express';

import type { DecideCheck } from '../../service/deciding/decide-check.js';
import { parseCheck, type Query } from '../intake/parameters.js';
import { preferredWaitSeconds } from '../intake/preferences.js';
import { type AnswerParts, decisionAnswers } from './decision-answers.js';
import { rejectTooManyHits } from './too-many-hits.js';

/** Answers one check. @throws ServiceError and what a limiter throws */
export type CheckRate = (key: string, query: Query, response: Response) => Promise<void>;

interface CheckRateParts extends AnswerParts {
  readonly decide: DecideCheck;
}

/** `POST` and `GET /rate/{key}` */
export function checkRate(parts: CheckRateParts): CheckRate {
  const { decide } = parts;
  const answer = decisionAnswers(parts);
  return async (key, query, response) => {
    const check = parseCheck(key, query);
    // The parameter overrides the preference.
    const mayPrefer = check.canWait && check.maxWaitMillis === undefined;
    const seconds = mayPrefer ? preferredWaitSeconds(response.req.get('prefer')) : undefined;
    const asked = seconds === undefined ? check : { ...check, maxWaitMillis: seconds * 1000 };
    const decided = await decide(asked, response.locals.context);
    rejectTooManyHits(asked, decided);
    answer(response, asked.key, decided, seconds === undefined ? undefined : `wait=${seconds}`);
  };
}
