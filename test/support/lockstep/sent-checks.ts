import type { Limiter } from '../../../src/limiter/limiter.js';
import { startCheck, type WatchedCheck } from '../watched-check.js';
import type { Terms } from './steps.js';

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

  send(limiter: Limiter, key: string, requestId: string | undefined, asked: Terms): SentCheck {
    const keepMillis = asked.canWait && requestId !== undefined ? asked.keepMillis : undefined;
    const terms: Terms = {
      ...asked,
      holder: asked.holdMillis === undefined ? undefined : asked.holder,
      keepMillis,
      answerMillis: keepMillis === undefined ? undefined : asked.answerMillis,
    };
    const onPlaceEnded = (): void => {
      sent.placesEnded += 1;
    };
    const check = startCheck(limiter, { ...terms, key, requestId, onPlaceEnded });
    const sent: SentCheck = {
      ...{ limiter, key, requestId, terms, check },
      isHandedOver: false,
      placesEnded: 0,
    };
    this.#sent.push(sent);
    return sent;
  }

  get undecided(): readonly SentCheck[] {
    return this.#sent.filter(({ check: { settled, failure } }) => !settled && !failure);
  }

  /** The latest check of each request whose caller has chosen its id, in the order of these checks. */
  get latestOfEachId(): readonly SentCheck[] {
    const latest = new Map<string, SentCheck>();
    for (const sent of this.#sent) {
      if (sent.requestId === undefined) continue;
      latest.delete(sent.requestId);
      latest.set(sent.requestId, sent);
    }
    return [...latest.values()];
  }

  /** Those with chosen ids whose requests may wait, or be approved without a check that was told. */
  get open(): readonly SentCheck[] {
    return this.latestOfEachId.filter(
      ({ check: { settled, failure }, isHandedOver }) =>
        isHandedOver || settled?.outcome === 'waiting' || (!settled && !failure),
    );
  }

  /** The approvals that were told, and perhaps requests that may wait, in the order of their checks. */
  requests(withOpen: boolean): readonly Request[] {
    const open = new Set(withOpen ? this.open : []);
    return this.#sent.flatMap((sent): Request[] => {
      const { limiter, key, requestId, check } = sent;
      if (check.settled?.outcome === 'approved') {
        const { claim } = check.settled;
        return [{ limiter, key, requestId: check.settled.requestId, claim }];
      }
      return requestId !== undefined && open.has(sent) ? [{ limiter, key, requestId }] : [];
    });
  }

  /** The checks whose callers have chosen their ids. */
  get named(): readonly (SentCheck & { readonly requestId: string })[] {
    return this.#sent.filter(
      (sent): sent is SentCheck & { readonly requestId: string } => sent.requestId !== undefined,
    );
  }

  /** The limiters that were sent to. */
  get limiters(): ReadonlySet<Limiter> {
    return new Set(this.#sent.map(({ limiter }) => limiter));
  }

  /** The outcome of each check so far, without request ids, which differ between limiters. */
  outcomes(): unknown[] {
    return this.#sent.map(({ check: { settled, failure }, isHandedOver, placesEnded }) => {
      if (isHandedOver) return 'handed over';
      if (failure) return failure.message;
      if (!settled) return 'waiting';
      const hasPlaceEnded = settled.outcome === 'waiting' ? placesEnded : undefined;
      return { ...settled, requestId: undefined, claim: undefined, hasPlaceEnded };
    });
  }
}
