import type { handleUnaryCall } from '@grpc/grpc-js';
import type { Logger } from 'pino';

import type { Settings } from '../config/settings.js';
import type { Access } from '../http/auth/access.js';
import type { DecideCheck } from '../http/deciding/decide-check.js';
import type { LatelyRefused } from '../http/deciding/lately-refused.js';
import { releaseUnused } from '../http/deciding/release-unused.js';
import { logShadow } from '../http/deciding/shadow-log.js';
import { errorAnswer } from '../http/replies/errors.js';
import { httpErrorFor } from '../http/replies/http-error-for.js';
import { logSubject } from '../http/replies/log-subject.js';
import { CLIENT_CLOSED_REQUEST, levelOf } from '../http/replies/request-log.js';
import type { CheckRequest, Limiter } from '../limiter/limiter.js';
import type { KeyPolicy } from '../rules/policy.js';
import { type Decided, decideTogether } from './decide-together.js';
import { checksOf, keyedDescriptorsOf } from './descriptor-checks.js';
import { GatewayCall } from './gateway-call.js';
import { grpcStatusOf } from './grpc-status.js';
import { keyTemplate } from './key-template.js';
import type { RateLimitRequest, RateLimitResponse } from './messages.js';
import { repliesBy } from './reply.js';

export interface ShouldRateLimitParts {
  readonly decide: DecideCheck<GatewayCall>;
  readonly limiter: Pick<Limiter, 'release' | 'giveBack'>;
  readonly policyOf: (key: string) => KeyPolicy;
  readonly access: Pick<Access, 'enter' | 'demandKey'>;
  readonly lately: Pick<LatelyRefused, 'noting'>;
  readonly settings: Pick<
    Settings,
    'GRPC_KEY_TEMPLATE' | 'RATE_LIMIT_HEADERS' | 'LOG_2XX' | 'LOG_4XX' | 'LOG_5XX'
  >;
  readonly logger: Logger;
}

const DENIED_STATUS = errorAnswer('RATE_LIMIT_EXCEEDED').status;

/** The one call of Envoy's rate limit service: approves all descriptors of a request, or none. */
export function shouldRateLimit(
  parts: ShouldRateLimitParts,
): handleUnaryCall<RateLimitRequest, RateLimitResponse> {
  const { access, decide, limiter, settings, logger } = parts;
  const keyOf = keyTemplate(settings.GRPC_KEY_TEMPLATE);
  const replyTo = repliesBy(settings);
  // A call has its caller and its span only once it is decided.
  const logOf = (call: GatewayCall): Logger => logger.child(logSubject(call));
  const noteAndSet = parts.lately.noting<(decided: Omit<Decided, 'check'>) => void, GatewayCall>(
    (call, key, decision, policy, set) => {
      if (policy.isShadow && decision.outcome === 'denied' && settings.LOG_4XX) {
        logShadow(logOf(call), key, decision.reason);
      }
      set({ decision, policy });
    },
  );

  const decideOne = (check: CheckRequest, call: GatewayCall): Promise<Decided> =>
    new Promise((resolve, reject) => {
      decide(check, call, noteAndSet, (decided) => {
        resolve({ check, ...decided });
      }).catch(reject);
    });

  const answer = async (
    request: RateLimitRequest,
    call: GatewayCall,
  ): Promise<(Decided | undefined)[]> => {
    access.enter('check', call);
    const keyed = keyedDescriptorsOf(request, keyOf);
    call.keys = keyed.map(({ key }) => key);
    for (const key of call.keys) access.demandKey(key, call);
    const checks = checksOf(request, keyed, parts.policyOf, call.millisToWait);
    return decideTogether(checks, {
      decide: (check) => decideOne(check, call),
      release: ({ key, hits }, requestId) =>
        releaseUnused(limiter, { key, requestId, hits }, logOf(call)),
      withdrawWaiting: () => {
        call.withdrawWaiting();
      },
      onUntold: (error) => {
        logUntold(error, call);
      },
      get isCancelled() {
        return call.isCancelled;
      },
    });
  };

  const logAnswer = (status: number, call: GatewayCall, line: object): void => {
    const level = levelOf(status, settings);
    if (level === 'silent' || !logger.isLevelEnabled(level)) return;
    const responseTime = Math.round(performance.now() - call.locals.startedAt);
    logOf(call)[level]({ keys: call.keys, status, ...line, responseTime }, 'call answered');
  };

  const logUntold = (error: unknown, call: GatewayCall): void => {
    if (!isFault(error) || !settings.LOG_5XX) return;
    logOf(call).error({ keys: call.keys, err: error }, 'descriptor not decided');
  };

  return (unary, callback) => {
    const call = new GatewayCall(unary);
    answer(unary.request, call)
      .then((decided) => {
        if (call.isCancelled) {
          // As over HTTP, a client is missed that waited.
          const level = decided.some((one) => one?.decision.outcome === 'withdrawn')
            ? 'info'
            : 'debug';
          const line = { keys: call.keys, status: CLIENT_CLOSED_REQUEST };
          logOf(call)[level](line, 'gateway gave up before the answer');
          return;
        }
        const reply = replyTo(decided);
        const code = reply.overall_code;
        logAnswer(code === 'OK' ? 200 : DENIED_STATUS, call, { code });
        callback(null, reply);
      })
      .catch((error: unknown) => {
        const { code: errorCode, message } = httpErrorFor(error);
        const { status } = errorAnswer(errorCode);
        const cause = isFault(error) ? { err: error } : { reason: message };
        logAnswer(status, call, { errorCode, ...cause });
        callback({ code: grpcStatusOf(status), details: message });
      });
  };
}

function isFault(error: unknown): boolean {
  return httpErrorFor(error).code === 'INTERNAL_ERROR';
}
