import type { CallerPresence, Labels, RequestTerms } from './request.js';
import type { Algorithm } from './kinds/kinds.js';
import type { ForEachLimit, LimitInForce, LimitQuota, Limits, LimitState } from './limits.js';
import type { GroupState, QueueListState } from './queue-order.js';

/**
 * The greatest overrides that count; -1 if none does. A greater one is dropped at the key's next check, since the limits may
 * have changed after a request set it.
 */
export type OverrideCeilings = Readonly<Record<keyof Overrides, number>>;

/** What a limiter has to know of a key: its limits without overrides. */
export interface KeyLimits {
  readonly limits: Limits;
  readonly maxRequestsInQueue: number;
  /** Undefined if every override counts. */
  readonly ceilings?: OverrideCeilings | undefined;
}

/** The limits of each key, as of now. The same object as long as they do not change. */
export type LimitsOf = (key: string) => KeyLimits;

/** What applies to each key: its limits, and possibly more than a limiter has to know. */
export interface Policies<Policy extends KeyLimits = KeyLimits> {
  /** Another object whenever the policy of any key may have changed. */
  readonly current: { policyOf(key: string): Policy };
}

/** Follows a traced request through the limiter. */
export interface RequestTrace {
  /** The request has a place in the queue. */
  queued(): void;
}

/** What keeps the checks of a bulk request in order: an object of its own. */
export interface CheckOrder {
  /** What the limiter has to know of it. */
  state?: unknown;
}

/** One request for permission. An override that is omitted changes nothing. */
export interface CheckRequest extends RequestTerms {
  readonly key: string;
  /**
   * A UUID in lower case, of the caller's choice: the checks with it are one request. A check of a request that waits
   * takes its place over, and one of a request that is approved gets the same approval. Undefined: a new request.
   */
  readonly requestId?: string | undefined;
  readonly canWait: boolean;
  /**
   * For a request that can wait: its caller has no place left to wait in. The request is approved at once, or denied
   * because the queue is full, or fails with `too_many_waiters`. It may still take over a place that waits in this process.
   */
  readonly noPlace?: boolean;
  /**
   * With `keepMillis`: how long the check waits for its answer. If it is not decided then, its decision is `waiting`.
   * 0: the check is answered when its place is known. Undefined: until it is decided.
   */
  readonly answerMillis?: number | undefined;
  /**
   * With `keepMillis`: called once if the decision was `waiting`, when the place is no longer in this process. It was
   * approved, denied or withdrawn, or another check has it.
   */
  readonly onPlaceEnded?: (() => void) | undefined;
  /**
   * With several hits: if the limits deny it, it takes the rest of each fixed window by hits that lacks room for it. Nobody
   * else is approved by such a limit until its window ends. Nothing exceeds a maximum.
   */
  readonly takesRest?: boolean | undefined;
  readonly maxRequests?: number | undefined;
  readonly maxRequestsInQueue?: number | undefined;
  /** The length of the key's windows, from the next one on; of a key that begins, at once. */
  readonly windowMillis?: number | undefined;
  /** Checks of a key with the same order are decided in the order in which they were asked, also if calls fail. */
  readonly order?: CheckOrder | undefined;
  readonly trace?: RequestTrace | undefined;
}

/** What a check sets of the limits of its key. */
export type Overrides = Pick<CheckRequest, 'maxRequests' | 'maxRequestsInQueue' | 'windowMillis'>;

/** Whether a check sets a limit of its key. */
export function isOverride({ maxRequests, maxRequestsInQueue, windowMillis }: Overrides): boolean {
  return (
    maxRequests !== undefined || maxRequestsInQueue !== undefined || windowMillis !== undefined
  );
}

/**
 * Whether a check is plain, as nearly all are: it asks for one hit of its key, and for nothing else. It can't wait, is not held,
 * has no lane and no request id of its caller's choice, and sets no limit. It may have a group that no limit counts apart.
 */
export function isPlain(check: CheckRequest): boolean {
  const { canWait, hits = 1, holdMillis, list, requestId } = check;
  const asksForMore = canWait || hits > 1 || holdMillis !== undefined || requestId !== undefined;
  const isCounted = list?.kind === 'lane' || list?.hasLimits === true;
  return !asksForMore && !isCounted && !isOverride(check);
}

/** While the store is down, `allow` approves everything, and with `local` this replica decides alone. */
export type OutagePolicy = 'allow' | 'local';

/** What changes about an approval. In any case its hold is renewed, if it is held and not too long. */
export interface Amendment {
  /** 0 or more. Undefined: as before. */
  readonly hits?: number | undefined;
  /** The length of its hold from now on. Undefined: as before. */
  readonly holdMillis?: number | undefined;
  /** The most hits that it may get. It may keep what it has. Undefined: ten times the key's maximum. */
  readonly maxHits?: number | undefined;
  /** A longer hold is not renewed: it lapses when it would have. Undefined: every hold is renewed. */
  readonly maxHoldMillis?: number | undefined;
}

/** An approval that still counts. */
export interface Amended {
  /** Milliseconds until its hold lapses; undefined if it is not held. */
  readonly holdMillis?: number | undefined;
}

/** Why nothing has changed: the approval would get too many hits, or its hold alone was to be renewed and is too long. */
export type RejectedAmendment =
  { readonly rejected: 'hits'; readonly maxHits: number } | { readonly rejected: 'hold' };

/** Hits that their caller gives back without the approvals that took them. */
export interface RefundRequest extends Pick<CheckRequest, 'key' | 'list'> {
  /** How many at most. */
  readonly hits: number;
}

/** What a vendor says of its own limit, for which a limit of a key stands. */
export interface RemainingReport {
  /** The name of a further limit. Undefined: the key's own. */
  readonly limit?: string | undefined;
  /** How much remains: a whole number of 0 or more. */
  readonly remaining: number;
  /** Milliseconds from now on until the vendor's limit resets. Undefined: until the window ends. */
  readonly resetMillis?: number | undefined;
  /** The group whose limit it is, if each has the limit to itself. */
  readonly group?: string | undefined;
}

/** What a limit has left after a report. */
export interface Remaining {
  readonly remaining: number;
}

/**
 * Why nothing counts of a report: the key has no such limit, but these further ones; the limit is no fixed window; or the key has
 * no room for the group.
 */
export type RejectedReport =
  | { readonly rejected: 'limit'; readonly further: readonly string[] }
  | { readonly rejected: 'algorithm'; readonly algorithm: Algorithm['name'] }
  | { readonly rejected: 'key_full' };

/** What a key has left after a decision. */
export interface Quota {
  /** As they are in force. */
  readonly limits: ForEachLimit<LimitQuota>;
  /** Until the pause of the group ends that the decision is about; undefined if it is not paused. */
  readonly groupPausedMillis?: number | undefined;
}

/**
 * Why a check is denied. `queue_full_of_group`: as many wait of its group as may. `turn_too_late`: its turn could not come within its longest wait, which was clear at once;
 * `wait_expired`: it did not come. `too_many_hits`: it asked for more hits than the maximum, so no window could approve
 * it. `paused`: the key or the group is paused.
 */
export const DENIAL_REASONS = [
  'limit_reached',
  'queue_full',
  'queue_full_of_group',
  'turn_too_late',
  'wait_expired',
  'too_many_hits',
  'paused',
] as const;
export type DenialReason = (typeof DENIAL_REASONS)[number];

/** Where a request waits. */
export interface PlaceInQueue {
  /** 1 for the head of its list. Exact up to 1,000; a greater one may count some that have left the queue. */
  readonly position: number;
  /** The least time until its turn, in milliseconds, if nobody leaves the queue and nothing is released before. */
  readonly waitMillis: number;
}

export type Decision =
  | {
      readonly outcome: 'approved';
      readonly requestId: string;
      /**
       * What `giveBack` gets, if the caller has chosen the request id: it also names this check, so that an approval that a
       * later check has got stays. Undefined: the request id.
       */
      readonly claim?: string | undefined;
      /** Undefined if nothing was counted. */
      readonly quota?: Quota | undefined;
      /** Set if the request had to wait for its turn. */
      readonly waited?: true;
      /** Set if a substitute decided instead of the store. */
      readonly outagePolicy?: OutagePolicy;
    }
  | {
      readonly outcome: 'denied';
      readonly reason: DenialReason;
      readonly quota: Quota;
      /** Until its turn would have come, in milliseconds. Set if the reason is `turn_too_late`. */
      readonly turnMillis?: number;
      /** Set if a substitute decided instead of the store. */
      readonly outagePolicy?: OutagePolicy;
    }
  /** The caller disconnected while it waited. Its place was withdrawn, or its approval released. */
  | { readonly outcome: 'withdrawn' }
  /** With `keepMillis`: the request goes on to wait after this check. */
  | {
      readonly outcome: 'waiting';
      readonly requestId: string;
      /** Undefined if the caller has disconnected. */
      readonly place: PlaceInQueue | undefined;
    };

/** A decision that says whether the request may proceed. Other ones say what has become of a waiter. */
export type Verdict = Extract<Decision, { readonly outcome: 'approved' | 'denied' }>;

/** Returns where a request waits; undefined if it does not. */
export function placeIn(status: RequestStatus | undefined): PlaceInQueue | undefined {
  if (status?.status !== 'waiting') return undefined;
  const { position, waitMillis } = status;
  return { position, waitMillis };
}

export function isVerdict(decision: Decision | Peek): decision is Verdict | Peek {
  return decision.outcome === 'approved' || decision.outcome === 'denied';
}

/** What a peek asks about: a check that does not wait. */
export type PeekRequest = Pick<CheckRequest, 'key' | 'hits' | 'holdMillis' | 'list'>;

/** What a check would get now. The quota is the one before it. */
export type Peek =
  | {
      readonly outcome: 'approved';
      /** Undefined if nothing would be counted. */
      readonly quota?: Quota | undefined;
      /** Set if a substitute would decide instead of the store. */
      readonly outagePolicy?: OutagePolicy;
    }
  | {
      readonly outcome: 'denied';
      readonly reason: Extract<DenialReason, 'limit_reached' | 'too_many_hits' | 'paused'>;
      readonly quota: Quota;
      /**
       * The least time until the turn of a check that joined the queue now, in milliseconds. With a maximum of 0, for which
       * no turn ever comes: until the limits may have room.
       */
      readonly turnMillis: number;
      readonly outagePolicy?: OutagePolicy;
    };

/**
 * What a request is now that waits, or that was approved. With a chosen request id, it is approved for as long as a check
 * with the id gets the approval; otherwise, for as long as the approval counts.
 */
export type RequestStatus =
  | (PlaceInQueue & {
      readonly status: 'waiting';
      /** What stops its group alone: the name of a limit, or `paused`. */
      readonly stoppedBy?: string | undefined;
    })
  | (Amended & { readonly status: 'approved' });

/** `full`: the store has no room for new keys, and still decides existing keys. */
export type StoreCondition = 'ok' | 'full';

/** A key's state as of now. */
export interface InstanceState {
  readonly key: string;
  readonly limits: ForEachLimit<LimitState>;
  /** Those that each group has to itself, in the order of the rules. Undefined if there are none. */
  readonly limitsOfGroups?: readonly LimitInForce[] | undefined;
  readonly maxRequestsInQueue: number;
  /** The hits of the held approvals, which are among what the approvals take. */
  readonly held: number;
  readonly denied: number;
  readonly waiting: number;
  /** Until its pause ends, in milliseconds; 0 if it is not paused. */
  readonly pausedMillis: number;
}

/** A held approval as it is shown: without its id, which would allow anyone to release it. */
export interface Holding extends Labels {
  /** Names it among those of its key, see `handleOf`. */
  readonly handle: string;
  /** How long it has been held. Undefined without a label. */
  readonly heldMillis: number | undefined;
  /** Until its hold lapses, unless that is renewed. */
  readonly lapseMillis: number;
  readonly hits: number;
}

/** A replica that has places in a key's queue. */
export interface QueueingReplica {
  /** Undefined if there is only one. */
  readonly replica: string | undefined;
  readonly places: number;
  /** Until its places count no longer, unless it renews its lease; at most 0 if they don't count. */
  readonly leaseMillis: number | undefined;
}

/** A name that a key has in the store. */
export interface StoredName {
  /** What is stored under it. */
  readonly content: string;
  readonly name: string;
}

/** Everything about a key as of now. */
export interface InstanceDetail extends InstanceState {
  /** Which limits requests have set. The length of the next window counts as well. */
  readonly overridden: Readonly<Record<keyof Overrides, boolean>>;
  /** Whether the key recovers from a loss in the store, so that nobody is approved for a moment. */
  readonly isRecovering: boolean;
  /** The head of the queue, in its order, without the ids, which would allow anyone to release the approvals. */
  readonly queue: readonly {
    /** Where it waits; undefined if there is only one replica. */
    readonly replica: string | undefined;
    readonly waitedMillis: number;
  }[];
  /** The lists in which somebody waits, the longest first, at most 20. Empty if all wait in one list, first come, first served. */
  readonly lists?: readonly QueueListState[];
  /** How many lists have waiters. Default: 0. */
  readonly listCount?: number;
  /** The groups that have most of the limits that each has to itself, at most 20. Undefined if there are no such limits. */
  readonly groups?: readonly GroupState[] | undefined;
  readonly replicas: readonly QueueingReplica[];
  /** Empty without a store. */
  readonly names: readonly StoredName[];
}

/** What an operation is asked of a key, and what it answers. */
interface Operation<Asked, Answer> {
  readonly asked: Asked & { readonly key: string; readonly trace?: RequestTrace | undefined };
  readonly answer: Answer;
}

/** What a limiter does with a key besides checks. */
export interface Operations {
  /**
   * Releases an approval that still counts, with all of its hits. The head of the queue gets them. If a request waits whose
   * caller has chosen this id, or its approval is kept for its caller, it is withdrawn: the id is unknown afterwards.
   * Answers false if the id is unknown, was released before, or its window has ended or its hold has lapsed.
   */
  release: Operation<
    {
      readonly requestId: string;
      /** Nobody has got the approval, so that it counts in no limit. Default: false. */
      readonly isUnused?: boolean;
    },
    boolean
  >;

  /**
   * Gives back an approval that nobody uses, so that it counts in no limit. If the store is down, this is done later, as
   * long as the approval counts. `claim` is of the decision, or its request id. Answers false if it is clear at once that
   * there is none.
   */
  giveBack: Operation<{ readonly claim: string }, boolean>;

  /**
   * Changes an approval that still counts, and renews its hold. With fewer hits, the head of the queue gets the room. With
   * more, the approvals may exceed the maximum: then nobody is approved until there is room again. Answers undefined where
   * a release answers false; also if the amendment is about a hold alone, and the approval is not held.
   */
  amend: Operation<
    Amendment & { readonly requestId: string },
    Amended | RejectedAmendment | undefined
  >;

  /**
   * Pauses a key, or a group of it alone: nobody is approved until the pause ends, and waiters keep their places. Answers for how
   * many milliseconds.
   */
  pause: Operation<
    {
      /** The group. Undefined: the whole key. */
      readonly group?: string | undefined;
      /** From now on; 0 ends the pause. */
      readonly millis: number;
      /** Whether a pause that is on may end sooner by it. Default: true. */
      readonly canShorten?: boolean | undefined;
    },
    number
  >;

  /**
   * Takes a vendor's report of how much remains of a limit. What counts of it becomes at least its maximum less what
   * remains, until the vendor's limit resets. If that is later than the end of the window, the window ends then. A report
   * never makes room, and a later one that leaves less replaces it.
   */
  reportRemaining: Operation<RemainingReport, Remaining | RejectedReport>;

  /**
   * Gives hits back without the approvals that took them, in the fixed windows of a key that count its list, by hits, and give
   * back what is released. The head of the queue gets the room. Held approvals count on. The release of an approval whose hits
   * were refunded gives its hits back again, but no more than still count. Answers how many hits the key's own limit has given
   * back; 0 if it is no fixed window.
   */
  refund: Operation<RefundRequest, number>;

  /**
   * Says what a check would get now. Nothing changes, and no key is created or kept. Fails with an UnavailableError or a
   * StoreFullError where a check would fail for that reason, as far as the limiter can tell without a change.
   */
  peek: Operation<PeekRequest, Peek>;

  /**
   * Says what a request is now. Nothing changes, and nothing is kept for longer. Answers undefined if the id is unknown or
   * was released, or its approval is over.
   */
  statusOf: Operation<{ readonly requestId: string }, RequestStatus | undefined>;

  /** Answers undefined if no such key exists. */
  inspect: Operation<unknown, InstanceState | undefined>;

  /** The state of a key with all details. `mostQueued` is how many requests of the queue to name. */
  examine: Operation<{ readonly mostQueued: number }, InstanceDetail | undefined>;

  /**
   * The approvals of a key that are held, in the order of their lapses: at most `MOST_HOLDINGS`, and none if no such key
   * exists.
   */
  holdings: Operation<unknown, readonly Holding[]>;

  /** Releases a held approval by its handle. Answers false if there is none. */
  endHold: Operation<{ readonly handle: string }, boolean>;
}

export type OperationName = keyof Operations;
export type Asked<Name extends OperationName> = Operations[Name]['asked'];
export type Answer<Name extends OperationName> = Operations[Name]['answer'];

/** A function for each operation. */
export type OperationFunctions = {
  readonly [Name in OperationName]: (asked: Asked<Name>) => Promise<Answer<Name>>;
};

/** What does some of the {@link Operations}. */
export interface Operator<Names extends OperationName> {
  ask<Name extends Names>(operation: Name, asked: Asked<Name>): Promise<Answer<Name>>;
}

/**
 * A rate limiter: exact limits and a queue for each key.
 *
 * A check, an operation, a list and a ping may reject with a StoreUnavailableError, and for a new key in a full store with
 * a StoreFullError. A denial is a {@link Decision}, never an error.
 */
export interface Limiter extends Operator<OperationName> {
  /**
   * Asks for permission. With `canWait` the promise resolves when the request's turn has come, or when its longest wait
   * is over. With `keepMillis` also when the check waits no longer for its answer.
   * @param caller its disconnect withdraws a request that can wait, unless its place is kept
   * @throws RequestIdConflictError if the limiter knows the request id otherwise, also while the request waits
   * @throws UnavailableError whose reason is `shutting_down` if the replica stops while the request waits, or has
   * stopped; `handed_over` if it stops, and other replicas keep the place; `too_many_waiters` if the request would have to wait, but too many wait already; `key_full` if the store
   * keeps no more ids of the key's window
   */
  check(request: CheckRequest, caller?: CallerPresence): Promise<Decision>;

  /**
   * Every key, in no order and in pages. A key that is created or removed meanwhile may be missing. A key may
   * appear twice, since remembering all keys that have appeared would take memory for each.
   */
  list(): AsyncIterable<readonly InstanceState[]>;

  /** Resolves when the store has answered. */
  ping(): Promise<StoreCondition>;

  /** To be called when the limits of keys may have changed. Waiters that have room by them are approved. */
  limitsChanged(): void;

  /** The number of requests that wait here for their turn, of one key or of all, kept places included. */
  waiting(key?: string): number;

  /**
   * To be called when this process is about to stop, before waiters get their grace. If other processes share the store,
   * checks with `keepMillis` fail from now on because they are `handed_over`, and their places stay for their time.
   * Otherwise only the places end whose callers are not here.
   */
  handOver(): void;

  /** Rejects the requests that wait, since this replica is `shutting_down`, and frees all resources. */
  close(): Promise<void>;
}

/** Observes what becomes of approvals that nobody is told of. The metrics implement it. */
export interface ApprovalObserver {
  /** This number of approvals was kept for callers with `keepMillis`, and no caller has come for them in time. */
  unclaimed(count: number): void;
}

/** A limiter whose store may be down, for all keys or for some. */
export interface StoreLimiter extends Limiter {
  /** False while the store is known to be down for this key. Then it gets no calls for it. */
  isAvailable(key: string): boolean;
  /** Calls back when this has changed for some keys. */
  onAvailabilityChange(listener: () => void): void;
}
