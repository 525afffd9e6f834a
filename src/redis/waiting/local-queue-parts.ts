import type { Clock } from '../../common/clock.js';
import type { KeptPlacesParts } from './kept-places.js';
import type { LeaseRenewals } from './leases.js';
import type { SettleCallsParts, SettleLine } from './settle-calls.js';
import type { WaitingStore } from '../scripts/scripts.js';
import type { WakeChannel } from './wake-channel.js';
import type { WindowLeader } from './window-leader.js';

export interface LocalQueueParts
  extends
    SettleCallsParts,
    Pick<KeptPlacesParts, 'isAvailable' | 'confirmations' | 'approvals' | 'statuses'> {
  readonly store: Pick<WaitingStore, 'settle'>;
  readonly wakes: Pick<WakeChannel, 'listen' | 'unlisten'>;
  readonly renewals: Pick<LeaseRenewals, 'watch' | 'unwatch'>;
  readonly line: Pick<SettleLine, 'add' | 'addLater' | 'remove'>;
  readonly createLeader: () => WindowLeader;
  readonly clock: Clock;
  /** Redis's time, if it is known: never too early. */
  readonly latestTime: () => number | undefined;
  /** The length of the key's windows by this replica's rules, as of now. */
  readonly windowMillis: () => number;
  /** How long after the end of a window this replica waits for another window leader. */
  readonly graceMillis: number;
  /** How long after there is room a settle is due, by that time of Redis's clock. */
  readonly delayMillis: (storeRoomAt: number) => number;
  /** Called when there is a place more, or a place less. */
  readonly onSizeChange: (by: 1 | -1) => void;
  /**
   * Called once, when no place remains.
   * @param ended resolves when all calls of this queue have ended; undefined if none is under way
   */
  readonly onOver: (ended: Promise<unknown> | undefined) => void;
}
