/** A list of a key whose waiters arrive in a lane. Of two heads, the one goes first that arrived less its head start earlier. */
export interface Lane {
  /** Unique among the lanes of its key. */
  readonly name: string;
  /** 0 or more. Nobody is overtaken by somebody who arrived later than this. */
  readonly headStartMillis: number;
}

/** In what order the waiters of a key have their turns, where it has several lists. Inside a list: first come, first served. */
export type QueueOrder =
  | {
      readonly kind: 'lanes';
      /** One at least. A check that names none is in the last one. */
      readonly lanes: readonly Lane[];
    }
  | {
      /** Each group gets its share of what is approved, by weight. */
      readonly kind: 'fair';
      /** Inside a group, the order of its waiters. Undefined: first come, first served. */
      readonly lanes: readonly Lane[] | undefined;
      /** The most that may wait of one group. Undefined: the queue has no other bound than its own. */
      readonly maxRequestsInQueuePerGroup: number | undefined;
      /** By the names of groups. All others have {@link DEFAULT_WEIGHT}. */
      readonly weights: ReadonlyMap<string, number>;
    };

/** The share of a group whose weight no rule names. */
export const DEFAULT_WEIGHT = 1;

/** The list of a check, in a key that has several. It keeps what the rules said when the check came. */
export type QueueList =
  | { readonly kind: 'lane'; readonly name: string; readonly headStartMillis: number }
  | {
      readonly kind: 'group';
      /** '' for checks that name none. */
      readonly name: string;
      readonly weight: number;
      /** The most that may wait of the group. Undefined: no other bound than the queue's. */
      readonly maxRequests: number | undefined;
      /** Whether limits count the group apart. Default: false. */
      readonly hasLimits?: boolean | undefined;
      /** Of its lane inside the group: the waiters of a group have their turns in the order of arrival less this. Default: 0. */
      readonly headStartMillis?: number | undefined;
    };

/** As many lists of a key are shown. */
export const MOST_LISTS_SHOWN = 20;

/** A list of a key's queue as it is shown. */
export interface QueueListState {
  /** `fifo`: the list of waiters without a lane or a group. */
  readonly kind: 'fifo' | QueueList['kind'];
  /** '' for `fifo`, and for the group of checks that name none. */
  readonly name: string;
  readonly waiting: number;
  /** How long its head has waited, in milliseconds. */
  readonly oldestMillis: number;
  /**
   * Of a group that is stopped alone: the name of the limit that stops its head, the one that has room last, or `paused`. `paused` is
   * no name of a limit where it counts: a limit with that name is shown in the same way.
   */
  readonly stoppedBy?: string | undefined;
  /** For how long at least, in milliseconds. Undefined if only a release can end it. */
  readonly stoppedMillis?: number | undefined;
}

/** What a group has of the limits that each group has to itself. */
export interface GroupState {
  /** '' for the group of checks that name none. */
  readonly name: string;
  /** What counts of each limit, in their order. */
  readonly used: readonly number[];
}
