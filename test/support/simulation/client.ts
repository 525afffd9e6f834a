import { CallerPresence } from '../../../src/limiter/request.js';
import type { RequestIdConflict } from '../../../src/limiter/errors.js';
import type { QueueList } from '../../../src/limiter/queue-order.js';
import type { Decision, DenialReason } from '../../../src/limiter/limiter.js';

/** An approval as it was seen in Redis. */
export interface SeenApproval {
  readonly windowEnd: number;
  /** In which script call. */
  readonly call: number;
  /** Redis has lost what it knew of it. */
  isForgotten: boolean;
}

/** A request, and all that the world knows of it: one check, or several if its caller has chosen the id. */
export class SimulatedRequest {
  /** In the order in which they were asked. */
  readonly checks: SimulatedClient[] = [];
  /** The check to which Redis gave it last; undefined until then, and without an id of the caller's choice. */
  owner: SimulatedClient | undefined;
  /** Its approval belongs to no check, since several were told of it. */
  isOfNoCheck = false;
  /** The ticket of its place in Redis. */
  ticket: number | undefined;
  /** The list of that place. */
  list: QueueList | undefined;
  /** Until when its place or approval is there at least without a connection, in ms since the world began. */
  keptUntil = -Infinity;
  approval: SeenApproval | undefined;
  /** When the hold of its approval lapses or has lapsed, if nobody renews it. */
  heldUntil = Infinity;
  /** Whether somebody has changed how much its approval takes. */
  isAmended = false;
  /** The script call that released its approval. */
  releasedBy: number | undefined;
  /** The last script call that withdrew or released it, whether or not there was anything left. */
  withdrawnBy = 0;

  /** @param isNamed whether its caller has chosen the id */
  constructor(
    readonly id: string,
    readonly isNamed: boolean,
  ) {}

  /** The check that waits, or has the approval. */
  get newest(): SimulatedClient {
    return this.owner ?? this.checks[0]!;
  }
}

/** What a check asks for, beside the limits that it sets. */
export interface AskedTerms {
  readonly canWait: boolean;
  /** The longest that it waits. Default: for ever. */
  readonly maxWaitMillis?: number;
  /** How much of the maximum it asks for, all or nothing. Default: 1. */
  readonly hits?: number;
  /** For how long it asks to hold its approval; undefined if it does not. */
  readonly holdMillis?: number;
  /** For how long its place is kept without it; undefined if that ends with it. */
  readonly keepMillis?: number;
  /** With `keepMillis`: how long it waits for its answer. Default: as long as for its turn. */
  readonly answerMillis?: number;
  /** Undefined without a lane or a group. */
  readonly list?: QueueList | undefined;
}

/** One check of somebody. */
export class SimulatedClient {
  readonly presence = new CallerPresence();
  /** When its connection ended, as far as its caller knows, in ms since the world began: it was told something, or is gone. */
  endedAt = Infinity;
  /** What it was told. */
  outcome: Decision['outcome'] | 'failed' | undefined;
  /** Why it was denied. */
  reason: DenialReason | undefined;
  /** What its request id conflicts with, if it has failed with that. */
  conflict: RequestIdConflict | undefined;
  /** The first script call with the check. */
  ranBy: number | undefined;
  /** The script call by which the request was approved while it belonged to the check, or was given to it. */
  approvedBy: number | undefined;
  readonly canWait: boolean;
  readonly maxWaitMillis: number;
  readonly askedHits: number;
  readonly askedHold: number | undefined;
  readonly keepMillis: number | undefined;
  readonly answerMillis: number;
  readonly list: QueueList | undefined;

  constructor(
    readonly name: string,
    readonly request: SimulatedRequest,
    readonly replica: string,
    /** When it asked, in milliseconds since the world began. */
    readonly askedAt: number,
    terms: AskedTerms,
  ) {
    const { canWait, maxWaitMillis = Infinity, hits = 1, holdMillis } = terms;
    const { keepMillis, answerMillis = Infinity } = terms;
    this.canWait = canWait;
    this.maxWaitMillis = maxWaitMillis;
    this.askedHits = hits;
    this.askedHold = holdMillis;
    this.keepMillis = keepMillis;
    this.answerMillis = answerMillis;
    this.list = terms.list;
  }
}
