import { CallerPresence } from '../../../src/limiter/caller-presence.js';
import type { Decision, DenialReason } from '../../../src/limiter/limiter.js';

/** An approval as it was seen in Redis. */
export interface SeenApproval {
  readonly windowEnd: number;
  /** In which script call. */
  readonly call: number;
  /** Redis has lost what it knew of it. */
  isForgotten: boolean;
}

/** One request of somebody, and all that the world knows of it. */
export class SimulatedClient {
  readonly presence = new CallerPresence();
  /** What it was told. */
  outcome: Decision['outcome'] | 'failed' | undefined;
  /** Why it was denied. */
  reason: DenialReason | undefined;
  /** The ticket of its place in Redis. */
  ticket: number | undefined;
  approval: SeenApproval | undefined;
  /** When the hold of its approval lapses or has lapsed, if nobody renews it. */
  heldUntil = Infinity;
  /** Whether somebody has changed how much its approval takes. */
  isAmended = false;
  /** The script call that released its approval. */
  releasedBy: number | undefined;
  /** The last script call that withdrew or released it, whether or not there was anything left. */
  withdrawnBy = 0;

  constructor(
    readonly name: string,
    readonly replica: string,
    readonly canWait: boolean,
    /** When it asked, in milliseconds since the world began. */
    readonly askedAt: number,
    /** The longest that it waits. */
    readonly maxWaitMillis = Infinity,
    /** How much of the maximum it asks for, all or nothing. */
    readonly askedHits = 1,
    /** For how long it asks to hold its approval; undefined if it does not. */
    readonly askedHold?: number,
  ) {}
}
