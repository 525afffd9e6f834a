/** How a caller asks for an approval; the same in all visits of a request. Times are in milliseconds. */
export interface Terms {
  readonly id: string;
  readonly key: string;
  readonly hits: number;
  readonly keepMillis: number;
  /** Of the approval. */
  readonly holdMillis?: number | undefined;
  /** The longest wait over all visits. */
  readonly maxWaitMillis?: number | undefined;
}

/** `cut`: the connection broke, as when the replica died. `closed`: the client closed it. */
export type VisitOutcome = 'pending' | 'answered' | 'cut' | 'closed';

/** One connection of a caller for its request. Times are milliseconds since 1970 by the clock of this machine, which is Redis's clock too. */
export interface Visit {
  readonly kind: 'check' | 'release';
  readonly terms: Terms;
  /** The replica's index in the fleet, and its id in Redis. */
  readonly replica: number;
  readonly replicaId: string;
  /** `Prefer: wait` in seconds. */
  readonly preferSeconds?: number | undefined;
  readonly sentAt: number;
  readonly outcome: VisitOutcome;
  /** When it was answered, cut or closed. */
  readonly endedAt: number | undefined;
  readonly status?: number | undefined;
  readonly body: string;
  readonly retryAfter?: string | undefined;
  readonly connection?: string | undefined;
}

export type Ended = Pick<Visit, 'outcome'> &
  Partial<Pick<Visit, 'status' | 'body' | 'retryAfter' | 'connection'>>;

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** An account of every visit, from the clients' side. */
export class Visits {
  readonly #all: Mutable<Visit>[] = [];
  readonly #terms = new Map<string, Terms>();

  get all(): readonly Visit[] {
    return this.#all;
  }

  /** The terms of each request, by its id. */
  get terms(): ReadonlyMap<string, Terms> {
    return this.#terms;
  }

  /** To be called right before a request is sent. Returns its visit, and a function to call when it has ended. */
  sent(visit: Pick<Visit, 'kind' | 'terms' | 'replica' | 'replicaId' | 'preferSeconds'>): {
    readonly visit: Visit;
    readonly ended: (ended: Ended) => void;
  } {
    this.#terms.set(visit.terms.id, visit.terms);
    const entry: Mutable<Visit> = {
      ...visit,
      sentAt: Date.now(),
      outcome: 'pending',
      endedAt: undefined,
      body: '',
    };
    this.#all.push(entry);
    return {
      visit: entry,
      ended: (ended) => {
        Object.assign(entry, { endedAt: Date.now(), ...ended });
      },
    };
  }
}

/** A visit in words. */
export function describeVisit({ kind, terms, replica, status, outcome, sentAt }: Visit): string {
  const result = status === undefined ? outcome : String(status);
  return `${kind} of ${terms.key} at replica ${replica} (${terms.id}, sent at ${sentAt}, ${result})`;
}
