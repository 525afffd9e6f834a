import type { handleUnaryCall } from '@grpc/grpc-js';

import type { Settings } from '../config/settings.js';
import type { Access } from '../http/auth/access.js';
import type { DecideCheck } from '../http/deciding/decide-check.js';
import type { LatelyRefused } from '../http/deciding/lately-refused.js';
import { releaseUnused } from '../http/deciding/release-unused.js';
import { logShadow } from '../http/deciding/shadow-log.js';
import { errorAnswer } from '../http/replies/errors.js';
import type { CheckRequest, Limiter } from '../limiter/limiter.js';
import type { KeyPolicy } from '../rules/policy.js';
import type { CallHeads } from './call-heads.js';
import type { CallLog } from './call-log.js';
import type { CallMessage } from './call-message.js';
import { CallRoom } from './call-room.js';
import { type Decided, decideTogether } from './decide-together.js';
import { checkOf, type Draft, draftsOf, hitsOf } from './descriptor-checks.js';
import { GatewayCall } from './gateway-call.js';
import { keyTemplate } from './key-template.js';
import { HitShares } from './hit-shares.js';
import type { RateLimitResponse } from './messages.js';
import { repliesBy } from './reply.js';

/** Shares the ticks of the event loop. */
export interface Turns {
  /** @returns for how many of the wanted the turn has come */
  next(wanted: number): Promise<number>;
}

export interface ShouldRateLimitParts {
  readonly decide: DecideCheck<GatewayCall>;
  readonly limiter: Pick<Limiter, 'release' | 'giveBack'>;
  readonly policyOf: (key: string) => KeyPolicy;
  readonly access: Pick<Access, 'demandKey'>;
  readonly heads: Pick<CallHeads, 'of'>;
  readonly lately: Pick<LatelyRefused, 'noting'>;
  readonly settings: Pick<Settings, 'GRPC_KEY_TEMPLATE' | 'RATE_LIMIT_HEADERS' | 'LOG_4XX'>;
  readonly log: CallLog;
  /** Shared with bulk requests. */
  readonly turns: Turns;
}

/** Of a message that take as long as a check. One of less than this needs no turn. */
const BYTES_OF_TURN = 4096;

const DENIED_STATUS = errorAnswer('RATE_LIMIT_EXCEEDED').status;

/** The one call of Envoy's rate limit service: approves all descriptors of a request, or none. */
export function shouldRateLimit(
  parts: ShouldRateLimitParts,
): handleUnaryCall<CallMessage, RateLimitResponse> {
  const { access, decide, heads, limiter, log, policyOf, settings, turns } = parts;
  const room = new CallRoom();
  const shares = new HitShares();
  const keyOf = keyTemplate(settings.GRPC_KEY_TEMPLATE);
  const replyTo = repliesBy(settings);
  const noteAndSet = parts.lately.noting<(decided: Omit<Decided, 'check'>) => void, GatewayCall>(
    (call, key, decision, policy, set) => {
      if (policy.isShadow && decision.outcome === 'denied' && settings.LOG_4XX) {
        logShadow(log.of(call), key, decision.reason);
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

  /** Makes the checks of a call, which may take long: others are served between its turns. */
  const checksIn = async (message: CallMessage, call: GatewayCall): Promise<CheckRequest[]> => {
    for (let left = Math.floor(message.length / BYTES_OF_TURN); left > 0;) {
      left -= await turns.next(left);
    }
    const drafts = draftsOf(message, keyOf);
    call.keys = drafts.map(({ key }) => key);
    const make = (draft: Draft): CheckRequest => {
      access.demandKey(draft.key, call);
      return checkOf(draft, policyOf(draft.key), call.millisToWait);
    };
    // Like a check over HTTP, one alone waits for no turn.
    if (drafts.length === 1) return drafts.map(make);
    const checks: CheckRequest[] = [];
    while (checks.length < drafts.length && !call.isCancelled) {
      const made = checks.length;
      const end = made + (await turns.next(drafts.length - made));
      checks.push(...drafts.slice(made, end).map(make));
    }
    return checks;
  };

  const answer = async (
    message: CallMessage,
    call: GatewayCall,
  ): Promise<(Decided | undefined)[]> => {
    const checks = await room.hold(call.owner, message.length, () => checksIn(message, call));
    if (call.isCancelled) return [];
    const isAlone = hitsOf(checks) === 1;
    return decideTogether(checks, {
      decide: (check) => decideOne(check, call),
      // A waiter has a place of its own, and would keep others waiting.
      inTurn: (check, work) =>
        isAlone || check.canWait ? work() : shares.run(call.owner, hitsOf([check]), work),

      release: ({ key, hits }, requestId) =>
        releaseUnused(limiter, { key, requestId, hits }, log.of(call)),
      withdrawWaiting: () => {
        call.withdrawWaiting();
      },
      onUntold: (error) => {
        log.untold(error, call);
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
        log.answered(code === 'OK' ? 200 : DENIED_STATUS, call, { code });
        callback(null, reply);
      })
      .catch((error: unknown) => {
        callback(log.failed(error, call));
      });
  };
}
