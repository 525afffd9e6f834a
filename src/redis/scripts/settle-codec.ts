/** A waiter that a replica asks about. */
export interface Ticket {
  readonly requestId: string;
  readonly ticket: number;
}

/** What Redis says of a key's queue when it has served it. */
export interface SettleReply {
  /**
   * Milliseconds until there may be room again. 0: there is room now, and more waiters can be approved
   * by another call at once. Undefined: Redis knows no such key.
   */
  readonly millisToRoom: number | undefined;
  /** Every lower ticket has left the queue; infinite where Redis knows no such key. */
  readonly waitingFrom: number;
  /** How many wait, on all replicas. */
  readonly waiting: number;
  /** Ids approved by this call, and those asked about that were approved before, in whatever window. */
  readonly granted: readonly string[];
}

/** What `lua/settle.lua` is told of those it is asked about. */
export function encodeTickets(tickets: readonly Ticket[]): (string | number)[] {
  return tickets.flatMap(({ requestId, ticket }) => [requestId, ticket]);
}

export function decodeSettleReply(reply: unknown): SettleReply {
  const [micros, waitingFrom, waiting, ...granted] = reply as [number, number, number, ...string[]];
  const isKnown = micros >= 0;
  return {
    millisToRoom: isKnown ? micros / 1000 : undefined,
    waitingFrom: isKnown ? waitingFrom : Infinity,
    waiting,
    granted,
  };
}
