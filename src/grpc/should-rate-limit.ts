import type { handleUnaryCall } from '@grpc/grpc-js';
import type { Logger } from 'pino';

import type { Settings } from '../config/settings.js';
import type { Access } from '../http/auth/access.js';
import type { DecideCheck } from '../http/deciding/decide-check.js';
import type { LatelyRefused } from '../http/deciding/lately-refused.js';
import { releaseUnused } from '../http/deciding/release-unused.js';
import { errorAnswer } from '../http/replies/errors.js';
import { httpErrorFor } from '../http/replies/http-error-for.js';
import { logSubject } from '../http/replies/log-subject.js';
import { levelOf } from '../http/replies/request-log.js';
import type { CheckRequest, Limiter } from '../limiter/limiter.js';
import type { KeyPolicy } from '../rules/policy.js';
import { type Decided, decideTogether } from './decide-together.js';
import { checksOf } from './descriptor-checks.js';
import { GatewayCall } from './gateway-call.js';
import { grpcStatusOf } from './grpc-status.js';
import { keyTemplate } from './key-template.js';
import type { RateLimitRequest, RateLimitResponse } from './messages.js';
import { repliesBy } from './reply.js';

export interface ShouldRateLimitParts {
  readonly decide: DecideCheck<GatewayCall>;
  readonly limiter: Pick<Limiter, 'release'>;
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
/** The status in the log when a gateway gives up. It never sees it. */
const CLIENT_CLOSED_REQUEST = 499;

/** The one call of Envoy's rate limit service: approves all descriptors of a request, or none. */
export function shouldRateLimit(
  parts: ShouldRateLimitParts,
): handleUnaryCall<RateLimitRequest, RateLimitResponse> {
  const { access, decide, limiter, settings, logger } = parts;
  const keyOf = keyTemplate(settings.GRPC_KEY_TEMPLATE);
  const replyTo = repliesBy(settings);
  const noteAndSet = parts.lately.noting<(decided: Omit<Decided, 'check'>) => void, GatewayCall>(
    (_call, _key, decision, policy, set) => {
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
    log: Logger,
  ): Promise<RateLimitResponse> => {
    access.enter('check', call);
    const checks = checksOf(request, { ...parts, keyOf }, call.millisToWait);
    for (const { key } of checks) access.demandKey(key, call);
    const decided = await decideTogether(checks, {
      decide: (check) => decideOne(check, call),
      release: ({ key, hits }, requestId) => releaseUnused(limiter, { key, requestId, hits }, log),
      withdrawWaiting: () => {
        call.withdrawWaiting();
      },
      get isCancelled() {
        return call.isCancelled;
      },
    });
    return replyTo(decided);
  };

  return (unary, callback) => {
    const call = new GatewayCall(unary);
    const log = logger.child(logSubject(call));
    const logAnswer = (status: number, line: object): void => {
      const level = levelOf(status, settings);
      if (level !== 'silent') log[level](line, 'call answered');
    };
    answer(unary.request, call, log).then(
      (reply) => {
        if (call.isCancelled) {
          log.info({ status: CLIENT_CLOSED_REQUEST }, 'gateway gave up before the answer');
          return;
        }
        const isApproved = reply.overall_code === 'OK';
        logAnswer(isApproved ? 200 : DENIED_STATUS, { code: reply.overall_code });
        callback(null, reply);
      },
      (error: unknown) => {
        const { code: errorCode, message } = httpErrorFor(error);
        const { status } = errorAnswer(errorCode);
        logAnswer(status, {
          errorCode,
          ...(status === 500 ? { err: error } : { reason: message }),
        });
        callback({ code: grpcStatusOf(status), details: message });
      },
    );
  };
}
