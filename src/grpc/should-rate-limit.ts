import type { Settings } from '../config/settings.js';
import type { Peek } from '../limiter/limiter.js';
import { BodyBudget } from '../service/callers/body-budget.js';
import type { Decided, Peeked } from '../service/deciding/decide-check.js';
import type { AskedCheck } from '../service/deciding/lists-of-checks.js';
import { logShadowDenial } from '../service/request-context.js';
import type { Service } from '../service/service.js';
import type { CallLog } from './call-log.js';
import {
  type AskedTogether,
  CheckShares,
  type DecidedOrPeeked,
  decideTogether,
  releaseUnused,
} from './decide-together.js';
import { checkOf, type Draft, draftsOf, isPeek } from './descriptor-checks.js';
import type { GatewayCall } from './gateway-call.js';
import { keyTemplate } from './key-template.js';
import { type CallMessage, encodeReply } from './message-codec.js';
import { replyTo } from './reply.js';

/** The memory of a call besides its message. */
const BYTES_OF_CALL = 16 * 1024;
/** The bytes of a message that take as long as a check. A shorter message needs no slice. */
const BYTES_OF_CHECK = 4096;

/** The only method of Envoy's rate limit service: approves all descriptors of a request, or none. */
export function shouldRateLimit(
  service: Service,
  settings: Settings,
  log: CallLog,
): (call: GatewayCall, message: CallMessage) => void {
  const { access, policyOf, slices, limiter } = service;
  const budget = new BodyBudget();
  const shares = new CheckShares();
  const keyOf = keyTemplate(settings.GRPC_KEY_TEMPLATE);
  const showsLimit = settings.RATE_LIMIT_HEADERS !== 'off';

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
      const released = releaseUnused(check, decision.requestId, limiter, log.of(call));
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

  /** Gives hits back, which is never denied. */
  const refund = async ({ key, lane, group }: AskedCheck, hits: number): Promise<Peeked> => {
    await service.refund({ key, lane, group, hits });
    const peeked = await service.peek({ key, lane, group });
    const { quota, outagePolicy } = peeked.decision;
    const decision: Peek = { outcome: 'approved', quota, ...(outagePolicy && { outagePolicy }) };
    return { ...peeked, decision, limit: undefined };
  };

  const decide = async (check: AskedTogether, call: GatewayCall): Promise<DecidedOrPeeked> => {
    if (check.refund !== undefined) return refund(check, check.refund);
    const { key, lane, group } = check;
    // What a check of one hit would get.
    if (isPeek(check)) return service.peek({ key, lane, group });
    const decided = await new Promise<Decided>((resolve, reject) =>
      service.decide(check, call, resolve, reject),
    );
    logDenialInShadow(check, decided, call);
    return decided;
  };

  const decideAll = async (
    message: CallMessage,
    call: GatewayCall,
    read: readonly Draft[] | undefined,
  ): Promise<(DecidedOrPeeked | undefined)[]> => {
    const checks = await checksIn(message, call, read);
    if (call.isCancelled) return [];
    const decideOne = (check: AskedTogether) => decide(check, call);
    return decideTogether(checks, { call, log, limiter, shares, decide: decideOne });
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
        const reply = replyTo(decided, showsLimit);
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
      if (first && others.length === 0 && !isPeek(first) && !first.isRefund) {
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
