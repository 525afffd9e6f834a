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
}
