import type { Response } from 'express';

import { parseCheck, type Query } from '../intake/parameters.js';
import { preferredWaitSeconds } from '../intake/preferences.js';
import type { DecideCheck } from '../deciding/decide-check.js';
import { type AnswerParts, decisionAnswers } from './decision-answers.js';
import type { LatelyRefused } from '../deciding/lately-refused.js';

/** Answers one check. @throws HttpError and what a limiter throws */
export type CheckRate = (key: string, query: Query, response: Response) => Promise<void>;

interface CheckRateParts extends AnswerParts {
  readonly lately: Pick<LatelyRefused, 'noting'>;
}

/** `POST` and `GET /rate/{key}` */
export function checkRate(decide: DecideCheck, parts: CheckRateParts): CheckRate {
  const answer = parts.lately.noting(decisionAnswers(parts));
  return (key, query, response) => {
    const check = parseCheck(key, query);
    // A parameter says more than a preference.
    const mayPrefer = check.canWait && check.maxWaitMillis === undefined;
    const seconds = mayPrefer ? preferredWaitSeconds(response.req.get('prefer')) : undefined;
    if (seconds === undefined) return decide(check, response, answer, undefined);
    const limited = { ...check, maxWaitMillis: seconds * 1000 };
    return decide(limited, response, answer, `wait=${seconds}`);
  };
}
