import { groupBy } from '../../common/collections.js';
import type { Quota } from '../../limiter/limiter.js';
import type { QueueList } from '../../limiter/queue-order.js';
import type { Confirmed, KeyClaims } from '../scripts/several-keys.js';
import type { KeyNames } from '../shared/key-names.js';
import { BatchedCalls, type CallsParts } from './batched-calls.js';

/** The most approvals of one call, which belong to as many keys at most. */
const MAX_CLAIMS_PER_CALL = 100;
/** More would pile up while Redis stalls. */
const MAX_CALLS_UNDER_WAY = 4;

type Parts = Pick<CallsParts, 'slotOf' | 'clock' | 'ticks' | 'logger' | 'store'>;

/** An approval that is kept for its caller. */
export interface Unconfirmed {
  readonly names: KeyNames;
  readonly claim: string;
  /** The list that its request belongs to. */
  readonly list: QueueList | undefined;
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
 * Confirms the approvals of kept places before their callers are told. A call that fails is repeated for as long as the
 * callers wait.
 */
export class Confirmations extends BatchedCalls<Unconfirmed> {
  constructor(parts: Parts) {
    super({
      clock: parts.clock,
      ticks: parts.ticks,
      groupOf: ({ names }) => parts.slotOf(names.state),
      mostPerCall: MAX_CLAIMS_PER_CALL,
      mostUnderWay: MAX_CALLS_UNDER_WAY,
      isWanted: (approval) => approval.isWanted(),
      call: (approvals) => this.#confirm(approvals, parts),
      onFirstFailure: (failure) =>
        parts.logger.warn({ err: failure }, 'confirmations failed and will be retried'),
    });
  }

  confirm(approval: Unconfirmed): void {
    this.add([approval]);
  }

  async #confirm(approvals: readonly Unconfirmed[], { clock, store }: Parts): Promise<void> {
    const sentAt = clock.now();
    const byKey = groupBy(approvals, ({ names }) => names.state);
    const keyClaims = byKey.map((ofKey): KeyClaims => ({
      names: ofKey[0].names,
      claims: ofKey.map(({ claim }) => claim),
    }));
    let replies: readonly (Confirmed | Error)[];
    try {
      replies = await store.confirm(keyClaims);
    } catch (error) {
      replies = keyClaims.map(() => error as Error);
    }
    for (const [i, ofKey] of byKey.entries()) {
      const reply = replies[i];
      if (reply === undefined || reply instanceof Error) {
        this.addLater(ofKey, reply);
        continue;
      }
      for (const [j, { list, isWanted, onAnswer }] of ofKey.entries()) {
        if (isWanted()) onAnswer(reply.mayBeTold[j] === true, sentAt, reply.quotaOf?.(list));
      }
    }
  }
}
