import { isVerdict, type Limiter } from '../../../src/limiter/limiter.js';
import { startCheck, type WatchedCheck } from '../watched-check.js';
import { withoutResets } from './comparable.js';
import type { Terms } from './step.js';

/** A check, and what has become of it. */
export interface SentCheck {
  /** The limiter that it was sent to. */
  readonly limiter: Limiter;
  readonly key: string;
  /** Undefined if its caller has not chosen it. */
  readonly requestId: string | undefined;
  readonly terms: Terms;
  readonly check: WatchedCheck;
  /** Its process has handed its place over. */
  isHandedOver: boolean;
  /** How often its process was told that its place has ended. */
  placesEnded: number;
}

/** One whose caller has chosen the request id. */
export type NamedCheck = SentCheck & { readonly requestId: string };

/** Whether a request may wait, or may be approved without a check that was told. @param owner the check that it belongs to */
export function isOpen({ check: { settled } }: SentCheck): boolean {
  return settled === undefined || settled.outcome === 'waiting';
}

/** An approval, or a request that may wait. */
export interface Request {
  readonly limiter: Limiter;
  readonly key: string;
  readonly requestId: string;
  /** Of an approval whose caller has chosen the id. */
  readonly claim?: string | undefined;
}

/** The checks of one sequence of steps, in their order. */
export class SentChecks {
  readonly #sent: SentCheck[] = [];
  readonly #decided = new Set<WatchedCheck>();
  /** The checks of whose decisions the resets are not compared. */
  readonly #withoutResets = new Set<WatchedCheck>();

  send(limiter: Limiter, key: string, requestId: string | undefined, asked: Terms): SentCheck {
    const keepMillis = asked.canWait && requestId !== undefined ? asked.keepMillis : undefined;
    const { list } = asked;
    // The call that gives a check its place may serve it by its head start. Which of both it hears first is nobody's promise.
    const mayPass = list?.kind === 'group' && list.headStartMillis !== undefined;
    const hearsAny = keepMillis !== undefined && !(mayPass && asked.answerMillis === 0);
    const terms: Terms = {
      ...asked,
      holder: asked.holdMillis === undefined ? undefined : asked.holder,
      keepMillis,
      answerMillis: hearsAny ? asked.answerMillis : undefined,
    };
    const fate = { isHandedOver: false, placesEnded: 0 };
    const onPlaceEnded = (): void => {
      fate.placesEnded += 1;
    };
    const check = startCheck(limiter, { ...terms, key, requestId, onPlaceEnded });
    const sent: SentCheck = Object.assign(fate, { limiter, key, requestId, terms, check });
    this.#sent.push(sent);
    return sent;
  }

  get undecided(): readonly SentCheck[] {
    return this.#sent.filter(({ check: { settled, failure } }) => !settled && !failure);
  }

  /** Of each id that a caller has chosen, the check that the request belongs to, in the order of these checks. */
  get owners(): readonly NamedCheck[] {
    const owners = new Map<string, NamedCheck>();
    for (const sent of this.#sent) {
      const { requestId, check, isHandedOver } = sent;
      if (requestId === undefined || (check.failure && !isHandedOver)) continue;
      owners.delete(requestId);
      owners.set(requestId, { ...sent, requestId });
    }
    return [...owners.values()];
  }

  /** The owners whose requests may wait, or may be approved without a check that was told. */
  get open(): readonly NamedCheck[] {
    return this.owners.filter(isOpen);
  }

  hasOpen(requestId: string): boolean {
    return this.open.some((each) => each.requestId === requestId);
  }

  /** The approvals that were told, and perhaps requests that may wait, in the order of their checks. */
  requests(withOpen: boolean): readonly Request[] {
    const open = new Set(withOpen ? this.open.map(({ check }) => check) : []);
    return this.#sent.flatMap((sent): Request[] => {
      const { limiter, key, requestId, check } = sent;
      if (check.settled?.outcome === 'approved') {
        const { claim } = check.settled;
        return [{ limiter, key, requestId: check.settled.requestId, claim }];
      }
      return requestId !== undefined && open.has(check) ? [{ limiter, key, requestId }] : [];
    });
  }

  /** The limiters that were sent to. */
  get limiters(): ReadonlySet<Limiter> {
    return new Set(this.#sent.map(({ limiter }) => limiter));
  }

  /** The outcome of each check so far, without request ids, which differ between limiters. */
  outcomes(): unknown[] {
    this.#noteDecided();
    return this.#sent.map(({ check, isHandedOver, placesEnded }) => {
      const { settled, failure } = check;
      if (isHandedOver) return 'handed over';
      if (failure) return failure.message;
      if (!settled) return 'waiting';
      const told = { ...settled, requestId: undefined, claim: undefined };
      if (settled.outcome === 'waiting') return { ...told, placesEnded };
      if (!isVerdict(settled) || !this.#withoutResets.has(check)) return told;
      return { ...told, quota: settled.quota && withoutResets(settled.quota) };
    });
  }

  /**
   * An approval of a kept place becomes what was asked for when its caller is told: in memory at once, with Redis a call
   * later. So those that are told at the same time may learn of other resets.
   */
  #noteDecided(): void {
    const decided = this.#sent.filter(({ check }) => check.settled && !this.#decided.has(check));
    const isClaimed = decided.some(
      ({ check: { settled }, terms: { keepMillis } }) =>
        settled?.outcome === 'approved' && settled.waited && keepMillis !== undefined,
    );
    for (const { check } of decided) {
      this.#decided.add(check);
      if (isClaimed) this.#withoutResets.add(check);
    }
  }
}
