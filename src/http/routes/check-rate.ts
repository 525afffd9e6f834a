import type { Response } from 'express';

import { parseCheck, type Query } from '../intake/parameters.js';
import type { DecideCheck } from './decide-check.js';
import { type AnswerParts, decisionAnswers } from './decision-answers.js';
import type { LatelyRefused } from './ui/lately-refused.js';

/** Answers one check. @throws HttpError and what a limiter throws */
export type CheckRate = (key: string, query: Query, response: Response) => Promise<void>;

interface CheckRateParts extends AnswerParts {
  readonly lately: Pick<LatelyRefused, 'noting'>;
}

/** `POST` and `GET /rate/{key}` */
export function checkRate(decide: DecideCheck, parts: CheckRateParts): CheckRate {
  const answer = parts.lately.noting(decisionAnswers(parts));
  return (key, query, response) => decide(parseCheck(key, query), response, answer, undefined);
}
