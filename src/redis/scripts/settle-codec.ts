import { parseClaim } from '../../limiter/claims.js';
import { claimHere, endedHere, type EndedWait } from './claims-codec.js';
import type { QueueList } from '../../limiter/queue-order.js';
import type { UsedOfLimits } from './limits-codec.js';
import { encodeList } from './lists-codec.js';

/** A waiter that a replica asks about. */
export interface Ticket {
  readonly claim: string;
  readonly ticket: number;
  readonly hits: number;
  readonly holdMillis: number | undefined;
  readonly holder: string | undefined;
  /** Undefined if its key has one list. */
  readonly list?: QueueList | undefined;
  /** Undefined if its place ends with its check. */
  readonly keepMillis?: number | undefined;
  /** Undefined if it waits for as long as it takes. */
  readonly maxWaitMillis?: number | undefined;
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
  readonly millisToLook: number | undefined;
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

/** The reply of `lua/settle.lua` begins with this if Redis knows no such key. */
export const NO_SUCH_KEY = -1;

/** The arguments of `lua/settle.lua` for the waiters asked about. */
export function encodeTickets(tickets: readonly Ticket[]): (string | number)[] {
  return tickets.flatMap((waiter) => {
    const { claim, ticket, hits, holdMillis, holder, keepMillis, maxWaitMillis, list } = waiter;
    const { requestId, number } = parseClaim(claim);
    const ofHits = hits === 1 ? '' : `*${hits}`;
    const ofHold = holdMillis === undefined ? '' : `~${holdMillis}`;
    const ofKeep = keepMillis === undefined ? '' : `+${keepMillis}`;
    const ofWait = maxWaitMillis === undefined ? '' : `^${maxWaitMillis}`;
    const ofCheck = number === undefined ? '' : `#${number}`;
    const ofList = list === undefined ? '' : `|${encodeList(list)}`;
    const ofHolder = holder === undefined ? '' : `@${holder}`;
    const ofRequest = `${ofHits}${ofHold}${ofKeep}${ofWait}${ofCheck}${ofList}${ofHolder}`;
    return [requestId, `${ticket}${ofRequest}`];
  });
}

/** @param replicaId of the caller */
export function decodeSettleReply(reply: unknown, replicaId: string): SettleReply {
  const [micros, wakeNumber, waiting, limits, used, ...others] = reply as [
    number,
    number,
    number,
    string,
    UsedOfLimits,
    ...unknown[],
  ];
  const [microsToLook, at, places, unclaimed, missing, ...ids] = others as [
    number,
    number,
    number,
    number,
    number,
    ...string[],
  ];
  const heard = ids.slice(missing);
  const granted = heard
    .filter((text) => !text.includes('!'))
    .map((text): [string, string | undefined] => {
      const [claim = '', left] = text.split('~');
      return [claimHere(claim, replicaId) ?? '', left];
    });
  const isKnown = micros !== NO_SUCH_KEY;
  return {
    millisToRoom: isKnown ? micros / 1000 : undefined,
    millisToLook: microsToLook > 0 ? microsToLook / 1000 : undefined,
    wakeNumber,
    waiting,
    places,
    limits,
    used,
    at,
    unclaimed,
    putBack: ids.slice(0, missing).flatMap((claim) => claimHere(claim, replicaId) ?? []),
    granted: granted.map(([claim]) => claim),
    ended: endedHere(
      heard.filter((text) => text.includes('!')),
      replicaId,
    ),
    holdsLeft: new Map(
      granted.flatMap(([claim, left]) => (left === undefined ? [] : [[claim, Number(left)]])),
    ),
  };
}
