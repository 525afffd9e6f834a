/** The client of a `disconnect` also waits, but not for long. A `release`, or an `amend`, is about an approval. */
export type RequestKind =
  'check' | 'wait' | 'disconnect' | 'release' | 'amend' | 'pause' | 'report';

/** Those that ask for an approval. */
const CHECKS: readonly RequestKind[] = ['check', 'wait', 'disconnect'];

/** `cut`: the connection broke, as when the replica died. `disconnected`: the client closed it. */
export type Outcome = 'pending' | 'answered' | 'cut' | 'disconnected';

/**
 * One request and what came of it. Times are milliseconds since 1970 by the clock of this machine,
 * which is Redis's clock too.
 */
export interface Entry {
  readonly kind: RequestKind;
  readonly key: string;
  /** The replica's index in the fleet. */
  readonly replica: number;
  /** The longest that it waits, where that has a limit. */
  readonly limitMillis?: number | undefined;
  /** Of a check or an amendment. */
  readonly hits?: number | undefined;
  readonly holdMillis?: number | undefined;
  /** Of a check: what it names. */
  readonly lane?: string | undefined;
  readonly group?: string | undefined;
  /** Of a pause. */
  readonly pauseMillis?: number | undefined;
  /** Of a report: what remains of the key's own limit. */
  readonly remaining?: number | undefined;
  readonly sentAt: number;
  readonly outcome: Outcome;
  /** When it was answered or cut, or its client disconnected. */
  readonly endedAt: number | undefined;
  readonly status: number | undefined;
  /** The approval, or what is to be released. */
  readonly requestId: string | undefined;
  readonly retryAfter: string | undefined;
  /** The maximum of the key, as the answer says. */
  readonly maximum: number | undefined;
  readonly body: string;
}

export interface Approval extends Entry {
  readonly requestId: string;
  readonly endedAt: number;
}

export type Ended = Pick<Entry, 'outcome'> &
  Partial<Pick<Entry, 'status' | 'requestId' | 'retryAfter' | 'maximum' | 'body'>>;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** An account of every request that the load has made. */
export class Ledger {
  readonly #entries: Mutable<Entry>[] = [];

  get entries(): readonly Entry[] {
    return this.#entries;
  }

  get pending(): readonly Entry[] {
    return this.#entries.filter(({ outcome }) => outcome === 'pending');
  }

  /** What clients were told that they may do. */
  get approvals(): readonly Approval[] {
    return this.#entries.filter((entry): entry is Approval & Mutable<Entry> => isApproval(entry));
  }

  /** To be called right before a request is sent. Returns a function to call when the request has ended. */
  sent(
    request: Omit<Entry, keyof Ended | 'sentAt' | 'endedAt'> & Pick<Entry, 'requestId'>,
  ): (ended: Ended) => void {
    const entry: Mutable<Entry> = {
      ...request,
      sentAt: Date.now(),
      outcome: 'pending',
      endedAt: undefined,
      status: undefined,
      retryAfter: undefined,
      maximum: undefined,
      body: '',
    };
    this.#entries.push(entry);
    return (ended) => {
      Object.assign(entry, { endedAt: Date.now(), ...ended });
    };
  }
}

/** An entry in words. */
export function describeEntry({ kind, key, replica, status, requestId, outcome }: Entry): string {
  const result = status === undefined ? outcome : String(status);
  return `${kind} of ${key} at replica ${replica} (${requestId ?? 'no id'}, ${result})`;
}

export function isApproval({ kind, status }: Entry): boolean {
  return CHECKS.includes(kind) && status === 200;
}
