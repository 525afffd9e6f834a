import type { Logger } from 'pino';

import type { Clock } from '../../common/clock.js';
import { FrequentLog } from '../../common/frequent-log.js';
import { UnavailableError } from '../../limiter/errors.js';
import type { CheckRequest, Decision } from '../../limiter/limiter.js';
import { withinBudget, WaitingBudget } from '../../limiter/waiting-budget.js';
import { type ErrorCode, type ErrorValues, type ServiceError, serviceError } from '../errors.js';
import type { Caller, RequestContext, Scope } from '../request-context.js';
import type { Access } from './access.js';
import type { Tokens } from './tokens.js';

/**
 * Access for requests with a token of the right scope, for the right key: RFC 6750.
 * @param tokens read again for each request
 */
export function bearerAccess(
  tokens: { readonly current: Tokens },
  rejections: Pick<TokenRejections, 'record'>,
  places: Pick<CallerPlaces, 'take'>,
): Access {
  const rejection = <Code extends ErrorCode>(
    reason: RejectionReason,
    code: Code,
    values: ErrorValues<Code>,
  ): ServiceError => {
    rejections.record(reason);
    return serviceError(code, values);
  };

  const has = (scope: Scope, { caller }: RequestContext): boolean =>
    caller?.scopes.includes(scope) ?? false;

  const demand = (scope: Scope, context: RequestContext): void => {
    if (has(scope, context)) return;
    throw rejection('scope_missing', 'SCOPE_MISSING', { scope });
  };

  return {
    enter: (scope, context) => {
      const token = tokenOf(context);
      if (token === undefined) throw rejection('token_required', 'TOKEN_REQUIRED', {});
      const isForMetrics = scope === 'metrics';
      const { current } = tokens;
      const caller = isForMetrics ? current.readerOf(token) : current.callerOf(token);
      if (!caller) throw rejection('token_unknown', 'TOKEN_UNKNOWN', {});
      context.caller = caller;
      demand(isForMetrics ? 'debug' : scope, context);
    },
    demand,
    has,
    demandKey: (key, { caller }) => {
      if (caller?.mayUse(key)) return;
      throw rejection('key_not_allowed', 'KEY_NOT_ALLOWED', {});
    },
    mayUse: (key, { caller }) => caller?.mayUse(key) ?? false,
    mayUseAll: ({ caller }) => caller?.mayUseAll ?? false,
    withPlace: ({ caller }, request, check) => {
      const place = caller && places.take(caller, request);
      return place ? withinBudget(place, request, check) : withoutPlace(request, check);
    },
  };
}

async function withoutPlace(
  request: CheckRequest,
  check: (request: CheckRequest) => Promise<Decision>,
): Promise<Decision> {
  try {
    return await check({ ...request, noPlace: true });
  } catch (error) {
    const wouldWait = error instanceof UnavailableError && error.reason === 'too_many_waiters';
    throw wouldWait ? serviceError('TOO_MANY_WAITERS_OF_CALLER', {}) : error;
  }
}

/** The token in `Authorization: Bearer <token>`; the scheme in any case, RFC 9110, section 11.1. */
function tokenOf({ headers }: RequestContext): string | undefined {
  return /^bearer +(\S.*)$/i.exec(headers.authorization ?? '')?.[1];
}

/** Why a request is rejected for its token. */
type RejectionReason = 'token_required' | 'token_unknown' | 'scope_missing' | 'key_not_allowed';

/** Counts the requests that are rejected for their tokens, and logs them: one line a second with the counts by reason. */
export class TokenRejections extends FrequentLog<RejectionReason> {
  /** Since the start, by reason. */
  readonly counts: Record<RejectionReason, number> = {
    token_required: 0,
    token_unknown: 0,
    scope_missing: 0,
    key_not_allowed: 0,
  };

  constructor(clock: Clock, logger: Logger) {
    super(clock, (rejected) => logger.warn({ rejected }, 'requests rejected for their tokens'));
  }

  record(reason: RejectionReason): void {
    this.counts[reason] += 1;
    this.note(reason);
  }
}

/** Counts the places that each caller's waiters take on this replica. The counts outlive a change of the tokens. */
export class CallerPlaces {
  readonly #ofCallers = new Map<string, WaitingBudget>();

  /**
   * @param maxWaiters the places of all callers together
   * @param maxPerCaller the most places of a caller without a share of its own; half of all by default
   */
  constructor(
    private readonly maxWaiters: number,
    private readonly maxPerCaller = Math.ceil(maxWaiters / 2),
  ) {}

  /** @returns gives the place back; undefined if the caller has none left */
  take(caller: Caller, request: Pick<CheckRequest, 'key' | 'requestId'>): (() => void) | undefined {
    const { name } = caller;
    const places = this.#ofCallers.get(name) ?? new WaitingBudget();
    const giveBack = places.take(this.#mostOf(caller), request);
    if (!giveBack) return undefined;
    this.#ofCallers.set(name, places);
    return () => {
      giveBack();
      if (places.taken === 0 && this.#ofCallers.get(name) === places) this.#ofCallers.delete(name);
    };
  }

  /** A share is never less than one place. */
  #mostOf({ waitingShare }: Caller): number {
    if (waitingShare === undefined) return this.maxPerCaller;
    return Math.max(1, Math.round(waitingShare * this.maxWaiters));
  }
}
