import type { Waiter } from '../../limiter/waiter.js';
import type { UsedOfGroups, UsedOfLimits } from './limits-codec.js';
import {
  claimHere,
  type EndedWait,
  endedHere,
  itemsIn,
  type SaidItems,
  sayRequest,
} from './requests-codec.js';

/** A waiter that a replica asks about. */
export interface Ticket {
  readonly waiter: Pick<Waiter, 'request'>;
  readonly ticket: number;
}

/** What a replica knows of a key's window. */
export interface KnownWindow {
  /** Until there is room, in milliseconds; below 0 after that time. */
  readonly millisLeft: number;
  /** The limits in force, as Redis writes them; '' if it has not said. */
  readonly limits: string;
}

/** The state of a key's queue after Redis has served it. */
export interface SettleReply {
  /**
   * Milliseconds until there may be room again. 0: there is room now, and another call can approve more
   * waiters at once. Undefined: Redis knows no such key.
   */
  readonly millisToRoom: number | undefined;
  /** Milliseconds until the caller has to settle again, if that is sooner than there may be room. */
  readonly millisToSettle: number | undefined;
  /** The number of the last wake; 0 if there was none, or if Redis knows no such key. */
  readonly wakeNumber: number;
  /** How many wait, on all replicas. */
  readonly waiting: number;
  /** How many of the places in the queue are the caller's. */
  readonly places: number;
  /** The limits in force, as Redis writes them; '' if Redis knows no such key. */
  readonly limits: string;
  /** What counts of the limits after this call. */
  readonly used: UsedOfLimits;
  /** The same of the groups in which it has approved waiters. */
  readonly groups?: UsedOfGroups | undefined;
  /** When Redis ran this call, by its clock, in milliseconds since 1970. */
  readonly at: number;
  /** How many unclaimed approvals have lapsed since a reply told it. */
  readonly unclaimed: number;
  /** The claims of the waiters that were put back in the queue. This call may have approved them then. */
  readonly putBack: readonly string[];
  /** The claims approved by this call, and those asked about that were approved before, in any window. */
  readonly granted: readonly string[];
  /** The claims asked about whose waits have ended otherwise. */
  readonly ended: readonly EndedWait[];
  /** For each of these whose hold began before this call: milliseconds from the call until it lapses. */
  readonly holdsLeft: ReadonlyMap<string, number>;
}

/** What `lua/settle.lua` replies. */
interface SettleSaid extends Pick<
  SettleReply,
  'wakeNumber' | 'waiting' | 'places' | 'limits' | 'used' | 'groups' | 'at' | 'unclaimed'
> {
  readonly microsToRoom?: number;
  /** 0 if it has not to settle sooner. */
  readonly microsToSettle: number;
  readonly putBack: SaidItems<string>;
  readonly granted: SaidItems<string>;
  readonly ended: SaidItems<string>;
  readonly holdsLeft: Readonly<Record<string, number>>;
}

/** The argument of `lua/settle.lua` that is its own. */
export function encodeSettle(known: KnownWindow, askedAbout: readonly Ticket[]): string {
  const waiters = askedAbout.map(({ waiter, ticket }) => {
    const { requestId, owner: number } = waiter.request;
    return sayRequest(waiter.request, { requestId, number, ticket: `${ticket}` });
  });
  return JSON.stringify({ ...known, waiters });
}

/** @param replicaId of the caller */
export function decodeSettleReply(reply: unknown, replicaId: string): SettleReply {
  const { microsToRoom, microsToSettle, putBack, granted, ended, holdsLeft, ...said } = JSON.parse(
    reply as string,
  ) as SettleSaid;
  const here = (claims: SaidItems<string>): string[] =>
    itemsIn(claims).flatMap((claim) => claimHere(claim, replicaId) ?? []);
  return {
    ...said,
    millisToRoom: microsToRoom === undefined ? undefined : microsToRoom / 1000,
    millisToSettle: microsToSettle > 0 ? microsToSettle / 1000 : undefined,
    putBack: here(putBack),
    granted: here(granted),
    ended: endedHere(itemsIn(ended), replicaId),
    holdsLeft: new Map(
      Object.entries(holdsLeft).map(([claim, left]) => [claimHere(claim, replicaId) ?? '', left]),
    ),
  };
}
