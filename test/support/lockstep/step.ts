import type { Amendment, CheckRequest, RemainingReport } from '../../../src/limiter/limiter.js';
import type { QueueList } from '../../../src/limiter/queue-order.js';
import type { DeclaredLimits } from '../limits.js';

/** How many keys the steps are about. */
export const KEYS = 2;
/** How many request ids of each key callers choose. */
export const NAMES = 3;

/** What a check asks for. `holder` counts only with a hold, and what is kept only if the check can wait and has an id. */
export type Terms = Required<
  Pick<
    CheckRequest,
    | 'canWait'
    | 'noPlace'
    | 'maxWaitMillis'
    | 'keepMillis'
    | 'answerMillis'
    | 'hits'
    | 'holdMillis'
    | 'holder'
    | 'list'
    | 'takesRest'
    | 'maxRequests'
    | 'maxRequestsInQueue'
    | 'windowMillis'
  >
>;

/** `which` counts back from the latest that the step may be about. */
export type Step =
  | {
      readonly kind: 'check';
      readonly key: number;
      /** Which of the key's ids its caller has chosen. */
      readonly named: number | undefined;
      /** It has another id if the request with that one is decided. */
      readonly isNew: boolean;
      readonly terms: Terms;
    }
  /** A further check with the id of an earlier one, and with its terms but for some. */
  | { readonly kind: 'return'; readonly which: number; readonly changes: Partial<Terms> }
  /** A peek, and then perhaps the same as a check. */
  | {
      readonly kind: 'peek';
      readonly key: number;
      readonly hits: number | undefined;
      readonly holdMillis: number | undefined;
      readonly list?: QueueList | undefined;
      readonly isChecked: boolean;
    }
  /** Of one of the key's named requests, or of one of the approvals. */
  | { readonly kind: 'status'; readonly which: number }
  /** Of the caller of a check that is not decided. */
  | { readonly kind: 'disconnect'; readonly which: number }
  /** Of an approval, or of a request that waits and whose caller has chosen its id. */
  | { readonly kind: 'release'; readonly which: number }
  | { readonly kind: 'giveBack'; readonly which: number }
  /** Of an approval, which may not be held, or of a request whose place is kept. */
  | { readonly kind: 'endHold'; readonly which: number }
  | { readonly kind: 'amend'; readonly which: number; readonly amendment: Amendment }
  /** The process hands its kept places over, and their callers ask the process that replaces it. */
  | { readonly kind: 'handOver' }
  | {
      readonly kind: 'pause';
      readonly key: number;
      readonly millis: number;
      readonly canShorten: boolean;
      readonly group?: string | undefined;
    }
  | { readonly kind: 'report'; readonly key: number; readonly report: RemainingReport }
  | {
      readonly kind: 'refund';
      readonly key: number;
      readonly hits: number;
      readonly list?: QueueList | undefined;
    }
  | { readonly kind: 'advance'; readonly millis: number }
  /** A key has other limits from now on. */
  | { readonly kind: 'limit'; readonly key: number; readonly limits: DeclaredLimits };
