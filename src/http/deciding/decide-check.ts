import type { Response } from 'express';

import type { Settings } from '../../config/settings.js';
import type { KeyPolicy } from '../../rules/policy.js';
import { UnavailableError } from '../../limiter/errors.js';
import type { CallerPresence } from '../../limiter/caller-presence.js';
import type { CheckRequest, Decision, Limiter } from '../../limiter/limiter.js';
import type { FailureReason, Metrics } from '../../metrics/metrics.js';
import type { Asker } from '../asker.js';
import type { Access } from '../auth/access.js';
import { HttpError, httpError } from '../replies/http-error.js';
import type { UndecidedChecks } from './undecided-checks.js';

/** What decides checks. */
export interface DecideParts<From extends Asker> {
  readonly limiter: Limiter;
  /** What applies to a key as of now. */
  readonly policyOf: (key: string) => KeyPolicy;
  readonly metrics: Pick<Metrics, 'decided'>;
  readonly undecided: Pick<UndecidedChecks, 'note'>;
  readonly access: Pick<Access, 'demand' | 'withPlace'>;
  readonly settings: Pick<Settings, 'UNKNOWN_KEYS'>;
  /** Runs `work` with a client that hears when the asker disconnects. */
  readonly untilDisconnect: <T>(
    from: From,
    work: (client: CallerPresence) => Promise<T>,
  ) => Promise<T>;
}

/**
 * What is done with the decision on a check.
 * @param context what its asker handed in with the check, such as its place among others
 */
export type AnswerDecision<Context, From extends Asker = Response> = (
  from: From,
  key: string,
  decision: Decision,
  policy: KeyPolicy,
  context: Context,
) => void | Promise<void>;

/**
 * Decides a check, and hands the decision to `answer`. Returning it would cost another promise.
 * @throws HttpError and what a limiter throws, where there is no decision
 */
export type DecideCheck<From extends Asker = Response> = <Context>(
  check: CheckRequest,
  from: From,
  answer: AnswerDecision<Context, From>,
  context: Context,
) => Promise<void>;

/** The one way of every check to its decision: one in a request, one of many, and the descriptor of a gateway. */
export function checkDecider<From extends Asker>(parts: DecideParts<From>): DecideCheck<From> {
  const { policyOf, metrics, undecided, access, settings } = parts;
  const refusesUnknownKeys = settings.UNKNOWN_KEYS === 'deny';
  return async (check, from, answer, context) => {
    if (isOverride(check)) access.demand('configure', from);
    const policy = policyOf(check.key);
    if (refusesUnknownKeys && !policy.isKnown) throw httpError('KEY_UNKNOWN', {});
    refuseForbiddenOverrides(check, policy);
    let decision: Decision;
    try {
      // Nobody waits for a limit that lets everybody pass.
      const asked = policy.isShadow ? { ...check, canWait: false } : check;
      decision = await ask(parts, asked, from);
    } catch (error) {
      const reason = reasonOf(error);
      if (reason) undecided.note(reason);
      throw error;
    }
    metrics.decided(decision, (performance.now() - from.locals.startedAt) / 1000, policy);
    return answer(from, check.key, decision, policy, context);
  };
}

function ask<From extends Asker>(
  { limiter, access, untilDisconnect }: DecideParts<From>,
  check: CheckRequest,
  from: From,
): Promise<Decision> {
  if (!check.canWait) return limiter.check(check);
  return access.withPlace(from, (noPlace) => {
    const asked = noPlace ? { ...check, noPlace } : check;
    return untilDisconnect(from, (client) => limiter.check(asked, client));
  });
}

function isOverride({ maxRequests, maxRequestsInQueue }: CheckRequest): boolean {
  return maxRequests !== undefined || maxRequestsInQueue !== undefined;
}

/** Why a check could not be decided; undefined where that is a fault. */
function reasonOf(error: unknown): FailureReason | undefined {
  if (error instanceof UnavailableError) return error.reason;
  const isOverShare = error instanceof HttpError && error.code === 'TOO_MANY_WAITERS_OF_CALLER';
  return isOverShare ? 'too_many_waiters_of_caller' : undefined;
}

function refuseForbiddenOverrides(check: CheckRequest, policy: KeyPolicy): void {
  const { maxRequests, maxRequestsInQueue } = check;
  if (maxRequests !== undefined) {
    const max = policy.maxRequestsCeiling;
    refuse('maxRequests', policy.requestsCanSetRate, maxRequests, max);
  }
  if (maxRequestsInQueue !== undefined) {
    const max = policy.maxRequestsInQueueCeiling;
    refuse('maxRequestsInQueue', policy.requestsCanModQueue, maxRequestsInQueue, max);
  }
}

function refuse(parameter: string, isAllowed: boolean, value: number, max: number): void {
  if (!isAllowed) throw httpError('OVERRIDE_FORBIDDEN', { parameter });
  if (value > max) throw httpError('OVERRIDE_TOO_LARGE', { parameter, max });
}
