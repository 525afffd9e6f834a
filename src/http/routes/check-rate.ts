import type { Response } from 'express';

import { parseCheck, type Query } from '../intake/parameters.js';
import type { DecideCheck } from './decide-check.js';
import { type AnswerParts, decisionAnswers } from './decision-answers.js';

/** Answers one check. @throws HttpError and what a limiter throws */
export type CheckRate = (key: string, query: Query, response: Response) => Promise<void>;

/** `POST` and `GET /rate/{key}` */
export function checkRate(decide: DecideCheck, parts: AnswerParts): CheckRate {
  const answer = decisionAnswers(parts);
  return (key, query, response) => decide(parseCheck(key, query), response, answer, undefined);
}
