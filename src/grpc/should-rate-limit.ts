import type { handleUnaryCall } from '@grpc/grpc-js';

import type { Settings } from '../config/settings.js';
import { BodyBudget } from '../service/callers/body-budget.js';
import type { Decided } from '../service/deciding/decide-check.js';
import { decideTogether } from '../service/deciding/decide-together.js';
import type { AskedCheck } from '../service/deciding/lists-of-checks.js';
import { logShadowDenial } from '../service/request-log.js';
import type { Service } from '../service/service.js';
import type { CallHeads } from './call-heads.js';
import type { CallLog } from './call-log.js';
import type { CallMessage } from './call-message.js';
import { CheckShares } from './check-shares.js';
import { checkOf, type Draft, draftsOf } from './descriptor-checks.js';
import { GatewayCall } from './gateway-call.js';
import { keyTemplate } from './key-template.js';
import type { RateLimitResponse } from './messages.js';
import { repliesBy } from './reply.js';

export interface ShouldRateLimitParts {
  readonly service: Service;
  readonly heads: Pick<CallHeads, 'of'>;
  readonly settings: Pick<Settings, 'GRPC_KEY_TEMPLATE' | 'RATE_LIMIT_HEADERS' | 'LOG_4XX'>;
  readonly log: CallLog;
}

/** The memory of a call besides its message. */
const BYTES_OF_CALL = 16 * 1024;
/** The bytes of a message that take as long as a check. A shorter message needs no slice. */
const BYTES_OF_CHECK = 4096;

/** The only method of Envoy's rate limit service: approves all descriptors of a request, or none. */
export function shouldRateLimit(
  parts: ShouldRateLimitParts,
): handleUnaryCall<CallMessage, RateLimitResponse> {
  const { service, heads, log, settings } = parts;
  const { access, policyOf, slices } = service;
  const budget = new BodyBudget();
  const shares = new CheckShares();
  const keyOf = keyTemplate(settings.GRPC_KEY_TEMPLATE);
  const replyTo = repliesBy(settings);
  const decideOne = async (check: AskedCheck, call: GatewayCall): Promise<Decided> => {
    const decided = await new Promise<Decided>((resolve, reject) => {
      service.decide(check, call, resolve, reject);
    });
    const { decision, policy, limit } = decided;
    if (policy.isShadow && decision.outcome === 'denied' && settings.LOG_4XX) {
      logShadowDenial(log.of(call), check.key, decision.reason, limit?.name);
    }
    return decided;
  };

  /** The checks of a call, whose message counts in the budget until they are made. */
  const checksWithin = async (message: CallMessage, call: GatewayCall): Promise<AskedCheck[]> => {
    const memory = budget.memoryFor(call.owner);
    memory.take(message.length + BYTES_OF_CALL);
    try {
      return await checksIn(message, call);
    } finally {
      memory.giveBack();
    }
  };

  /** Makes the checks of a call. That may take long, so that other requests are served between its slices. */
  const checksIn = async (message: CallMessage, call: GatewayCall): Promise<AskedCheck[]> => {
    for (let left = Math.floor(message.length / BYTES_OF_CHECK); left > 0;) {
      left -= await slices.next(call, left);
    }
    const drafts = draftsOf(message, keyOf, policyOf);
    call.keys = drafts.map(({ key }) => key);
    const make = (draft: Draft): AskedCheck => {
      access.demandKey(draft.key, call);
      return checkOf(draft, policyOf(draft.key), call.millisToWait);
    };
    // As over HTTP, a single check does not wait for a slice.
    if (drafts.length === 1) return drafts.map(make);
    const checks: AskedCheck[] = [];
    while (checks.length < drafts.length && !call.isCancelled) {
      const made = checks.length;
      const end = made + (await slices.next(call, drafts.length - made));
      checks.push(...drafts.slice(made, end).map(make));
    }
    return checks;
  };

  const answer = async (
    message: CallMessage,
    call: GatewayCall,
  ): Promise<(Decided | undefined)[]> => {
    const checks = await checksWithin(message, call);
    if (call.isCancelled) return [];
    const isAlone = checks.length === 1;
    return decideTogether(checks, {
      limiter: service.limiter,
      log: () => log.of(call),
      decide: (check) => decideOne(check, call),
      // A waiter has its own place, and would keep its share for too long.
      inShare: (check, work) => (isAlone || check.canWait ? work() : shares.run(call.owner, work)),
      withdrawWaiting: () => {
        call.withdrawWaiting();
      },
      onSuppressedError: (error) => {
        log.suppressed(error, call);
      },
      get isCancelled() {
        return call.isCancelled;
      },
    });
  };

  return (unary, callback) => {
    const call = new GatewayCall(unary, heads.of(unary.metadata));
    answer(unary.request, call)
      .then((decided) => {
        if (call.isCancelled) {
          log.givenUp(
            call,
            decided.some((one) => one?.decision.outcome === 'withdrawn'),
          );
          return;
        }
        const reply = replyTo(decided);
        const code = reply.overall_code;
        log.replied(code === 'OK', call, { code });
        callback(null, reply);
      })
      .catch((error: unknown) => {
        callback(log.failed(error, call));
      });
  };
}
