import type { Logger } from 'pino';

import type { Clock } from '../../common/clock.js';
import { groupBy } from '../../common/group-by.js';
import type { Ticks } from '../../common/ticks.js';
import type { Quota } from '../../limiter/limiter.js';
import type { Confirmed, KeyClaims } from '../scripts/several-keys.js';
import { backoffMillis } from '../shared/backoff.js';
import type { KeyNames } from '../shared/key-names.js';
import { AtATime } from './at-a-time.js';
import type { WaitingStore } from './waiting-store.js';

/** The most approvals of one call, which belong to as many keys at most. Redis answers others between two calls. */
const MAX_CLAIMS_PER_CALL = 100;
/** More would pile up while Redis stalls. */
const MAX_CALLS_AT_A_TIME = 4;
const FIRST_RETRY_MILLIS = 50;

export interface ConfirmationsParts {
  readonly store: Pick<WaitingStore, 'confirm'>;
  readonly slotOf: (name: string) => number;
  readonly clock: Clock;
  readonly ticks: Ticks;
  readonly logger: Logger;
}

/** An approval that is kept for its caller. */
export interface Unconfirmed {
  readonly names: KeyNames;
  readonly claim: string;
  /** Whether its caller is still to be told. */
  readonly isWanted: () => boolean;
  /**
   * Called once, unless it is not wanted any more.
   * @param isConfirmed whether the caller may be told
   * @param sentAt when Redis was asked, by the clock
   * @param quota what the key has left then, if Redis knows it
   */
  readonly onAnswer: (isConfirmed: boolean, sentAt: number, quota: Quota | undefined) => void;
}

/**
 * Confirms the approvals of kept places before their callers are told. Those of one tick of the event loop share their
 * calls, of which few are under way at a time. A call that fails is repeated for as long as the callers wait.
 */
export class Confirmations {
  readonly #calls = new AtATime(MAX_CALLS_AT_A_TIME);
  #due: Unconfirmed[] = [];
  #failed: Unconfirmed[] = [];
  #isDue = false;
  #failures = 0;
  #cancelRetry: (() => void) | undefined;

  constructor(private readonly parts: ConfirmationsParts) {}

  add(approval: Unconfirmed): void {
    this.#due.push(approval);
    if (this.#isDue) return;
    this.#isDue = true;
    this.parts.ticks.next(() => {
      this.#isDue = false;
      this.#send();
    });
  }

  /** Redis is up again. */
  onStoreAvailable(): void {
    this.#retry();
  }

  close(): void {
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
    this.#failed = [];
  }

  #retry(): void {
    this.#cancelRetry?.();
    this.#cancelRetry = undefined;
    for (const approval of this.#failed.splice(0)) this.add(approval);
  }

  #send(): void {
    for (const ofSlot of groupBy(this.#due.splice(0), ({ names }) =>
      this.parts.slotOf(names.state),
    )) {
      for (let first = 0; first < ofSlot.length; first += MAX_CLAIMS_PER_CALL) {
        const next = ofSlot.slice(first, first + MAX_CLAIMS_PER_CALL);
        void this.#calls.run(() => this.#confirm(next));
      }
    }
  }

  async #confirm(approvals: readonly Unconfirmed[]): Promise<void> {
    // Some callers may have left while other calls were under way.
    const wanted = approvals.filter(({ isWanted }) => isWanted());
    if (wanted.length === 0) return;
    const sentAt = this.parts.clock.now();
    const byKey = groupBy(wanted, ({ names }) => names.state);
    const replies = await this.#ask(byKey);
    let failure: unknown;
    for (const [i, ofKey] of byKey.entries()) {
      const reply = replies[i];
      if (reply === undefined || reply instanceof Error) {
        this.#failed.push(...ofKey);
        failure = reply;
        continue;
      }
      for (const [j, { isWanted, onAnswer }] of ofKey.entries()) {
        if (isWanted()) onAnswer(reply.mayBeTold[j] === true, sentAt, reply.quota);
      }
    }
    if (this.#failed.length === 0) this.#failures = 0;
    else this.#retryLater(failure);
  }

  /** @returns for each key its reply, or the error with which it failed */
  async #ask(byKey: readonly (readonly Unconfirmed[])[]): Promise<readonly (Confirmed | Error)[]> {
    const keyClaims = byKey.flatMap((ofKey): KeyClaims[] => {
      const [first] = ofKey;
      return first ? [{ names: first.names, claims: ofKey.map(({ claim }) => claim) }] : [];
    });
    try {
      return await this.parts.store.confirm(keyClaims);
    } catch (error) {
      return keyClaims.map(() => error as Error);
    }
  }

  #retryLater(failure: unknown): void {
    if (this.#cancelRetry) return;
    this.#failures += 1;
    if (this.#failures === 1) {
      this.parts.logger.warn({ err: failure }, 'confirmations failed and will be retried');
    }
    const delay = backoffMillis(this.#failures, FIRST_RETRY_MILLIS);
    this.#cancelRetry = this.parts.clock.after(delay, () => {
      this.#retry();
    });
  }
}
