import type { Settings } from '../config/settings.js';
import type { Peek } from '../limiter/limiter.js';
import { BodyBudget } from '../service/callers/body-budget.js';
import type { Decided } from '../service/deciding/decide-check.js';
import {
  type AskedTogether,
  type DecidedOrPeeked,
  decideTogether,
  releaseUnused,
} from '../service/deciding/decide-together.js';
import type { AskedCheck } from '../service/deciding/lists-of-checks.js';
import { logShadowDenial } from '../service/request-context.js';
import type { Service } from '../service/service.js';
import type { CallLog } from './call-log.js';
import { checkOf, type Draft, draftsOf, isNoCheck, isPeek } from './descriptor-checks.js';
import type { GatewayCall } from './gateway-call.js';
import { keyTemplate } from './key-template.js';
import { type CallMessage, encodeReply } from './message-codec.js';
import { repliesBy } from './reply.js';

export interface ShouldRateLimitParts {
  readonly service: Service;
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
): (call: GatewayCall, message: CallMessage) => void {
  const { service, log, settings } = parts;
  const { access, policyOf, slices, limiter } = service;
  const budget = new BodyBudget();
  const shares = new CheckShares();
  const keyOf = keyTemplate(settings.GRPC_KEY_TEMPLATE);
  const replyTo = repliesBy(settings);

  const logDenialInShadow = ({ key }: AskedCheck, decided: Decided, call: GatewayCall): void => {
    const { decision, policy, limit } = decided;
    if (policy.isShadow && decision.outcome === 'denied' && settings.LOG_4XX) {
      logShadowDenial(log.of(call), key, decision.reason, limit?.name);
    }
  };

  const readDrafts = (message: CallMessage, call: GatewayCall): Draft[] => {
    const drafts = draftsOf(message, keyOf, policyOf);
    call.keys = drafts.map(({ key }) => key);
    return drafts;
  };

  const checkIn = (draft: Draft, call: GatewayCall): AskedTogether => {
    access.demandKey(draft.key, call);
    const check = checkOf(draft, policyOf(draft.key), call.millisToWait);
    // The hits may be those of other callers' approvals.
    if (check.refund !== undefined) access.demand('release', call);
    return check;
  };

  /**
   * Decides the only check of a call, as most have. Like a single check over HTTP, it waits for no slice, and each promise
   * that it did without would cost it more.
   */
  const decideAlone = (
    check: AskedCheck,
    call: GatewayCall,
    onDecided: (decided: readonly Decided[]) => void,
    onFailed: (error: unknown) => void,
  ): void => {
    const whenDecided = (decided: Decided): void => {
      const { decision } = decided;
      logDenialInShadow(check, decided, call);
      if (!call.isCancelled || decision.outcome !== 'approved') {
        onDecided([decided]);
        return;
      }
      const released = releaseUnused(check, decision.requestId, {
        limiter,
        log: () => log.of(call),
      });
      released.then(() => onDecided([decided]), onFailed);
    };
    service.decide(check, call, whenDecided, onFailed);
  };

  /**
   * Makes the checks of a call, whose message counts in the budget until they are made. That may take long, so that other
   * requests are served between its slices.
   */
  const checksIn = async (
    message: CallMessage,
    call: GatewayCall,
    read: readonly Draft[] | undefined,
  ): Promise<AskedTogether[]> => {
    const memory = budget.memoryFor(call.owner);
    memory.take(message.length + BYTES_OF_CALL);
    try {
      for (let left = Math.floor(message.length / BYTES_OF_CHECK); left > 0;) {
        left -= await slices.next(call, left);
      }
      const drafts = read ?? readDrafts(message, call);
      const checks: AskedTogether[] = [];
      while (checks.length < drafts.length && !call.isCancelled) {
        const made = checks.length;
        const end = made + (await slices.next(call, drafts.length - made));
        checks.push(...drafts.slice(made, end).map((draft) => checkIn(draft, call)));
      }
      return checks;
    } finally {
      memory.giveBack();
    }
  };

  /** What a check of one hit would get. */
  const peekAt = async ({ key, lane, group }: AskedCheck) => {
    const { peek, ...rest } = await service.peek({ key, lane, group });
    return { decision: peek, ...rest, check: { key, lane, group, canWait: false } };
  };

  /** Gives hits back, which is never denied. */
  const refundOf = async (asked: AskedTogether, hits: number): Promise<DecidedOrPeeked> => {
    const { key, lane, group } = asked;
    await service.refund({ key, lane, group, hits });
    const { decision: peek, policy, check } = await peekAt(asked);
    const { quota, outagePolicy } = peek;
    const decision: Peek = { outcome: 'approved', quota, ...(outagePolicy && { outagePolicy }) };
    return { decision, policy, check };
  };

  const decideAll = async (
    message: CallMessage,
    call: GatewayCall,
    read: readonly Draft[] | undefined,
  ): Promise<(DecidedOrPeeked | undefined)[]> => {
    const checks = await checksIn(message, call, read);
    if (call.isCancelled) return [];
    const isAlone = checks.length === 1;
    return decideTogether(checks, {
      limiter,
      log: () => log.of(call),
      decide: async (check) => {
        if (check.refund !== undefined) return refundOf(check, check.refund);
        if (isPeek(check)) return peekAt(check);
        const decided = await new Promise<Decided>((resolve, reject) =>
          service.decide(check, call, resolve, reject),
        );
        logDenialInShadow(check, decided, call);
        return decided;
      },
      // A waiter has its own place, and would keep its share for too long.
      inShare: (check, work) => (isAlone || check.canWait ? work() : shares.run(call.owner, work)),
      withdrawWaiting: () => call.withdrawWaiting(),
      onSuppressedError: (error) => log.suppressed(error, call),
      get isCancelled() {
        return call.isCancelled;
      },
    });
  };

  return (call, message) => {
    const onFailed = (error: unknown): void => call.fail(log.failed(error, call));
    const onDecided = (decided: readonly (DecidedOrPeeked | undefined)[]): void => {
      try {
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
        call.reply(encodeReply(reply));
      } catch (error) {
        onFailed(error);
      }
    };
    let read: Draft[] | undefined;
    try {
      read = message.length < BYTES_OF_CHECK ? readDrafts(message, call) : undefined;
      const [first, ...others] = read ?? [];
      if (first && others.length === 0 && !isNoCheck(first)) {
        decideAlone(checkIn(first, call), call, onDecided, onFailed);
        return;
      }
    } catch (error) {
      onFailed(error);
      return;
    }
    decideAll(message, call, read).then(onDecided, onFailed);
  };
}

/** The most checks that the store is asked for at a time, by one caller and in all. */
const MAX_OF_CALLER = 1000;
const MAX_IN_ALL = 4000;

interface Share {
  underWay: number;
  /** What begins each check that waits. */
  readonly waiting: (() => void)[];
}

/**
 * Shares the store among callers whose calls have several descriptors. Checks beyond a share wait; callers
 * are served one after the other.
 */
class CheckShares {
  #underWay = 0;
  readonly #shares = new Map<string, Share>();
  /** The shares of callers that wait, in the order in which they are served. */
  readonly #queue = new Set<Share>();

  /** Runs `ask`, which decides a check, as soon as the caller's share allows. */
  async run<T>(caller: string, ask: () => Promise<T>): Promise<T> {
    const share = this.#shares.get(caller) ?? { underWay: 0, waiting: [] };
    this.#shares.set(caller, share);
    await new Promise<void>((go) => {
      share.waiting.push(go);
      this.#queue.add(share);
      this.#letGo();
    });
    try {
      return await ask();
    } finally {
      this.#underWay -= 1;
      share.underWay -= 1;
      this.#letGo();
      if (share.underWay === 0 && share.waiting.length === 0) this.#shares.delete(caller);
    }
  }

  #letGo(): void {
    for (const share of this.#queue) {
      if (this.#underWay >= MAX_IN_ALL) return;
      if (share.underWay >= MAX_OF_CALLER) continue;
      const go = share.waiting.shift();
      this.#queue.delete(share);
      if (!go) continue;
      // The caller's next check comes after those of all others.
      if (share.waiting.length > 0) this.#queue.add(share);
      share.underWay += 1;
      this.#underWay += 1;
      go();
    }
  }
}
