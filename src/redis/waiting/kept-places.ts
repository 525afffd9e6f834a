import type { ApprovalBatches, NotifiedWaiter } from '../../limiter/approval-batches.js';
import type { CallerPresence } from '../../limiter/request.js';
import { placeIn, type PlaceInQueue, type Quota } from '../../limiter/limiter.js';
import type { Waiter } from '../../limiter/waiter.js';
import type { Confirmations } from './confirmations.js';
import type { LocalWaiters } from './local-waiters.js';
import type { SettleCalls, SettleCallsParts } from './settle-calls.js';
import type { StatusCalls } from './status-calls.js';

export interface KeptPlacesParts extends Pick<SettleCallsParts, 'names' | 'clock' | 'logger'> {
  readonly statuses: Pick<StatusCalls, 'statusOf'>;
  /** Whether Redis can be asked about the key, as far as is known. */
  readonly isAvailable: () => boolean;
  readonly confirmations: Pick<Confirmations, 'confirm'>;
  readonly approvals: Pick<ApprovalBatches, 'approve'>;
  /** Until there may be room, as far as is known. */
  readonly millisToRoom: () => number;
  /** Ends a place here and in Redis. */
  readonly withdraw: (claim: string) => void;
  /** Ends a place here. Redis has ended it, or keeps its approval. */
  readonly remove: (claim: string) => void;
  readonly calls: Pick<SettleCalls, 'told'>;
  /** A settle has to tell what has become of a place. */
  readonly onDoubted: () => void;
}

/** What becomes of the places of one key when their connections end: those that are kept outlive them. */
export class KeptPlaces {
  constructor(
    private readonly waiters: LocalWaiters,
    private readonly parts: KeptPlacesParts,
  ) {}

  /** Ends a check when its caller disconnects, and its place unless that is kept. */
  endOnDisconnect(waiter: Waiter, caller: CallerPresence | undefined): void {
    const { claimOrId: claim } = waiter;
    const { keepMillis } = waiter.request;
    if (keepMillis === undefined) {
      waiter.withdrawOnDisconnect(caller, () => {
        // A request without a ticket is withdrawn when it is answered.
        if (this.waiters.get(claim)?.state === 'queued') this.parts.withdraw(claim);
      });
    } else {
      waiter.onDisconnect(caller, () => this.keep(waiter, undefined));
    }
  }

  /**
   * Ends a check whose request waits on. When the place has been kept for its time it ends, unless Redis is down, or has not
   * answered the check: then the time begins again afterwards. The answer may be the place of a caller who left later.
   * @param place undefined if the caller has disconnected
   */
  keep(waiter: Waiter, place: PlaceInQueue | undefined): void {
    const { claimOrId: claim } = waiter;
    waiter.keep(place, this.parts.clock, () => {
      if (this.parts.isAvailable() && this.waiters.get(claim)?.state !== 'asking')
        this.parts.withdraw(claim);
    });
  }

  /** Tells a check with `keepMillis` where its request waits. From now on its place is kept. */
  async tellPlace(waiter: Waiter): Promise<void> {
    const { claimOrId: claim } = waiter;
    const place = await this.#placeOf(waiter);
    // If its place has ended meanwhile, it is decided.
    if (this.waiters.get(claim)) this.keep(waiter, place);
  }

  /** If Redis does not answer, or has just approved the request or lost it, as far as this replica knows. */
  async #placeOf({ claimOrId: claim, requestId }: Waiter): Promise<PlaceInQueue> {
    const { statuses, names, logger } = this.parts;
    try {
      const place = placeIn(await statuses.statusOf(names, requestId));
      if (place) return place;
    } catch (error) {
      logger.debug({ err: error, state: names.state }, 'the position of a request is not known');
    }
    const waitMillis = Math.max(0, this.parts.millisToRoom());
    return { position: this.waiters.countBefore(claim) + 1, waitMillis };
  }

  /**
   * Redis holds the approval for the caller of a kept place. If the caller is here, it is told once that is confirmed:
   * told first, it might use an approval that lapses.
   */
  granted(waiter: Waiter, at: number | undefined): void {
    const { claimOrId: claim } = waiter;
    const state = this.waiters.get(claim)?.state;
    if (state === 'granted') return;
    if (state === 'asking') {
      // The answer with its ticket is on its way. A settle follows it.
      this.waiters.doubt(claim);
      return;
    }
    if (waiter.decided) {
      // It is kept until its caller comes back to any replica, or its time is over.
      this.parts.remove(claim);
      return;
    }
    this.waiters.grant(claim);
    this.parts.confirmations.confirm({
      names: this.parts.names,
      claim,
      list: waiter.request.list,
      isWanted: () => this.waiters.get(claim)?.state === 'granted' && !waiter.decided,
      onAnswer: (isConfirmed, sentAt, quota) => {
        if (isConfirmed) {
          this.parts.calls.told(claim, at);
          this.#confirmed(waiter, sentAt, quota);
          return;
        }
        // The approval has lapsed, or Redis has lost it, or the request belongs to another check. A settle tells which.
        this.waiters.doubtGrant(claim);
        this.parts.onDoubted();
      },
    });
  }

  #confirmed(waiter: Waiter, sentAt: number, quota: Quota | undefined): void {
    const { claimOrId: claim } = waiter;
    const { holdMillis = Infinity } = waiter.request;
    // If the caller has disconnected since, the approval stays as long as the place would: the caller may come back for it.
    const release = (): void => {
      if (!waiter.isKept) this.parts.withdraw(claim);
    };
    const notified: NotifiedWaiter = {
      approveFromQueue: (quotaThen) => {
        const isTold = waiter.approveFromQueue(quotaThen);
        if (isTold) this.parts.remove(claim);
        return isTold;
      },
      fail: (error) => waiter.fail(error),
    };
    this.parts.approvals.approve(notified, release, quota, sentAt + holdMillis);
  }
}
