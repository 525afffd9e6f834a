/** A waiter that a replica asks about. */
export interface Ticket {
  readonly requestId: string;
  readonly ticket: number;
}

export interface SettleReply {
  /**
   * Until the window ends, or there may be room sooner. 0: there is room for more of those who wait, whom
   * the next call serves. Undefined: Redis knows no such key.
   */
  readonly millisToRoom: number | undefined;
  /** Every lower ticket has left the queue; infinite where Redis knows no such key. */
  readonly waitingFrom: number;
  readonly waiting: number;
  /** Those approved by this call, and those asked about that have been approved before. */
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
