import type { Quota } from '../../limiter/limiter.js';
import { repliesOfCurrentCall } from './key-claims-codec.js';
import { limitsIn, quotaIn, type UsedOfLimits } from './limits-codec.js';

/** What `lua/confirm.lua` replies for a key. */
type ConfirmReply =
  | readonly [claimed: string]
  | readonly [claimed: string, microsToRoom: number, limits: string, used: UsedOfLimits];

/** What has become of approvals of a key that were kept for their callers. */
export interface Confirmed {
  /** Whether the caller of each may be told. */
  readonly mayBeTold: readonly boolean[];
  /** What the key has left then. Undefined if there is no such key. */
  readonly quota: Quota | undefined;
}

/**
 * @returns for each key, in their order, what has become of its approvals, or its error
 * @throws the error of a key whose calendars do not hold Redis's time
 */
export function decodeConfirmed(reply: unknown): (Confirmed | Error)[] {
  return repliesOfCurrentCall<ConfirmReply>(reply).map((each) =>
    each instanceof Error ? each : confirmedIn(each),
  );
}

function confirmedIn([claimed, microsToRoom, limits, used]: ConfirmReply): Confirmed {
  const mayBeTold = Array.from(claimed, (digit) => digit === '1');
  if (microsToRoom === undefined || limits === undefined || used === undefined) {
    return { mayBeTold, quota: undefined };
  }
  return { mayBeTold, quota: quotaIn(limitsIn(limits).limits, used, microsToRoom / 1000) };
}
