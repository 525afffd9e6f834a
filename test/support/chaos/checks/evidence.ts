import type { LimitsInForce } from '../declared/limits-in-force.js';
import type { FaultRecord } from '../faults/fault.js';
import type { Ledger } from '../ledger.js';
import type { RedisAccount } from '../../monitor/redis-account.js';
import type { Standstills } from '../standstills.js';
import type { WithheldTime } from '../withheld-time.js';

/** What the checks judge a round by. */
export interface Evidence {
  /** What the clients saw. */
  readonly ledger: Pick<Ledger, 'entries' | 'pending' | 'approvals'>;
  /** What the servers did. */
  readonly account: Pick<
    RedisAccount,
    'violations' | 'approvals' | 'tickets' | 'lists' | 'wasWatched' | 'judged' | 'limits'
  >;
  readonly limits: Pick<LimitsInForce, 'allows' | 'declares' | 'isChangingIn'>;
  readonly faults: readonly FaultRecord[];
  readonly standstills: Pick<Standstills, 'millisWithin' | 'longestWithin'>;
  readonly withheld: Pick<WithheldTime, 'mostWithin'>;
}
