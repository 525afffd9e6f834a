import type { Confirmed, KeyClaims, LeasedPlaces } from '../scripts/several-keys.js';
import type { KeyNames } from '../shared/key-names.js';
import type { KnownWindow, SettleReply, Ticket } from '../scripts/settle-codec.js';
import type { Statuses } from '../scripts/looks-codec.js';

/**
 * The script calls for waiters. Each ends within a bounded time, and rejects with a StoreUnavailableError
 * if the store is down.
 */
export interface WaitingStore {
  /**
   * Serves the queue as of now, renews this replica's lease, and returns the state of its waiters. A waiter
   * that is neither approved nor in the queue is put back in its place.
   * @param known of a key that Redis may have lost
   * @param askedAbout in the order of their tickets
   */
  settle(names: KeyNames, known: KnownWindow, askedAbout: readonly Ticket[]): Promise<SettleReply>;

  /**
   * Renews this replica's leases for keys that are as it knows them. For other keys a settle has to follow.
   * @param leased in a cluster, with names in one slot
   * @returns those whose leases were not renewed
   */
  renew<Leased extends LeasedPlaces>(leased: readonly Leased[]): Promise<Leased[]>;

  /**
   * Withdraws waiters, and releases those that were approved.
   * @param withdrawals in a cluster, with names in one slot
   * @returns for each key, in their order, how many there were, or the error with which it failed alone
   */
  withdraw(withdrawals: readonly KeyClaims[]): Promise<(number | Error)[]>;

  /**
   * Claims approvals that are kept for the callers of kept places, since these callers are about to be told.
   * @param granted in a cluster, with names in one slot
   * @returns for each key, in their order, what has become of its approvals, or the error with which the key failed
   *   alone. If one may not, a settle tells what has become of its request
   */
  confirm(granted: readonly KeyClaims[]): Promise<(Confirmed | Error)[]>;

  statuses(names: KeyNames, requestIds: readonly string[]): Promise<Statuses>;
}
