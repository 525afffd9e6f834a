import type { NextFunction, Response } from 'express';

import type { Decided, DecideCheck } from '../../service/deciding/decide-check.js';
import type { AskedCheck } from '../../service/deciding/lists-of-checks.js';
import type { PeekCheck } from '../../service/deciding/peek-check.js';
import { parseCheck, parsePeek, type Query } from '../intake/parameters.js';
import { preferredWaitSeconds } from '../intake/preferences.js';
import { type AnswerParts, decisionAnswers, peekAnswers } from './decision-answers.js';
import { rejectTooManyHits } from './too-many-hits.js';

/**
 * Answers one check, or a peek at what it would get.
 * @param next gets the error of a check without a decision
 * @throws ServiceError if the check is invalid
 */
export type CheckRate = (key: string, query: Query, response: Response, next: NextFunction) => void;

interface CheckRateParts extends AnswerParts {
  readonly decide: DecideCheck;
  readonly peek: PeekCheck;
}

/** `POST` and `GET /rate/{key}` */
export function checkRate(parts: CheckRateParts): CheckRate {
  const { decide, peek } = parts;
  const answer = decisionAnswers(parts);
  const answerPeek = peekAnswers(parts.settings);
  return (key, query, response, next) => {
    const peeking = parsePeek(key, query);
    if (peeking) {
      peek(peeking)
        .then((peeked) => {
          rejectTooManyHits(peeking, { decision: peeked.peek, policy: peeked.policy });
          answerPeek(response, key, peeked);
        })
        .catch(next);
      return;
    }
    const check = parseCheck(key, query);
    const seconds = mayPrefer(check) ? preferredWaitSeconds(response.req.get('prefer')) : undefined;
    const asked = seconds === undefined ? check : preferring(check, seconds * 1000);
    const preference = seconds === undefined ? undefined : `wait=${seconds}`;
    const onDecided = (decided: Decided): void => {
      try {
        rejectTooManyHits(asked, decided);
        answer(response, asked.key, decided, preference);
      } catch (error) {
        next(error);
      }
    };
    decide(asked, response.locals.context, onDecided, next);
  };
}

/** Without a kept place, the parameter overrides the preference. */
function mayPrefer({ canWait, maxWaitMillis, keepMillis }: AskedCheck): boolean {
  return canWait && (maxWaitMillis === undefined || keepMillis !== undefined);
}

/** The end of the preferred time is the end of the wait, or only of this check if its place is kept. */
function preferring(check: AskedCheck, millis: number): AskedCheck {
  return check.keepMillis === undefined
    ? { ...check, maxWaitMillis: millis }
    : { ...check, answerMillis: millis };
}
