import type { Loss } from './faults.js';
import type { StoredKey } from './stored-keys.js';

/** A fault that may have had Redis forget what it had answered. */
export interface Forgetting {
  readonly loses: Loss;
  /** Milliseconds since 1970. */
  readonly endedAt: number;
}

/** What the clients of a key know. Times are of when requests were sent, in milliseconds since 1970. */
interface KeyAccount {
  /** By request id. */
  readonly held: Map<string, number>;
  /** Approvals that were released, and when. */
  readonly released: Map<string, number>;
  /** Approvals that Redis did not have when they were released. */
  readonly notFound: number[];
  /** Approvals of which clients are told no id. */
  readonly counted: number[];
  /** How many checks ended without a decision, or with their clients leaving. */
  undecided: number;
}

/** What excuses differences. */
export interface Excuses {
  readonly forgetting?: Forgetting | undefined;
  /** Whether the window of an approval may be over. By default all lie in one window. */
  readonly isOver?: (key: string, sentAt: number) => boolean;
}

/** What clients were told of their approvals, to be compared with what Redis has. */
export class Approvals {
  readonly #keys = new Map<string, KeyAccount>();
  readonly #violations: string[] = [];
  #told = 0;

  /** How many approvals clients were told of. */
  get told(): number {
    return this.#told;
  }

  approved(key: string, requestId: string, sentAt: number): void {
    const { held, released } = this.#of(key);
    if (held.has(requestId) || released.has(requestId)) {
      this.#violations.push(`${requestId} of ${key} was given twice`);
    }
    this.#told += 1;
    held.set(requestId, sentAt);
  }

  /** The same for a client that is told no request id. */
  approvedOne(key: string, sentAt: number): void {
    this.#told += 1;
    this.#of(key).counted.push(sentAt);
  }

  /** Whether a client was told of an approval of the key, and of its id. */
  isKnown(key: string): boolean {
    return this.#of(key).held.size > 0;
  }

  undecided(key: string): void {
    this.#of(key).undecided += 1;
  }

  /** A held approval, when it was to be released. */
  notFound(key: string, requestId: string): void {
    const { held, notFound } = this.#of(key);
    notFound.push(held.get(requestId)!);
  }

  released(key: string, requestId: string, sentAt: number): void {
    const { held, released } = this.#of(key);
    held.delete(requestId);
    released.set(requestId, sentAt);
  }

  /**
   * What is lost, or counted twice, or left behind, when no request is under way any more.
   * @param maximum of every key
   */
  differences(
    stored: ReadonlyMap<string, StoredKey>,
    maximum: number,
    excuses: Excuses = {},
  ): string[] {
    const found = new Map<string, string[]>();
    const add = (what: string, key: string): void => {
      found.set(what, [...(found.get(what) ?? []), key]);
    };
    for (const key of new Set([...this.#keys.keys(), ...stored.keys()])) {
      const known = stored.get(key) ?? { ids: [], approved: 0, waiting: 0 };
      for (const what of differencesOf(
        this.#of(key),
        known,
        maximum,
        excuses.forgetting,
        (sentAt) => excuses.isOver?.(key, sentAt) ?? false,
      ))
        add(what, key);
    }
    return [
      ...this.#violations,
      ...[...found].map(([what, keys]) => `${keys.length} keys (${keys[0]!}): ${what}`),
    ];
  }

  /** What is known of the approvals of a key in Redis, for somebody who looks for a fault. */
  explain(key: string, { ids, approved, waiting }: StoredKey): string {
    const { held, released, undecided } = this.#of(key);
    const known = ids.map((id) => {
      if (held.has(id)) return 'held';
      return released.has(id) ? 'released' : 'told to nobody';
    });
    return `${key}: ${waiting} wait, ${approved} approved (${known.join(', ')}), ${undecided} undecided`;
  }

  #of(key: string): KeyAccount {
    let account = this.#keys.get(key);
    if (!account) {
      account = { held: new Map(), released: new Map(), notFound: [], counted: [], undecided: 0 };
      this.#keys.set(key, account);
    }
    return account;
  }
}

function differencesOf(
  { held, released, notFound, counted, undecided }: KeyAccount,
  { ids, approved, waiting }: StoredKey,
  maximum: number,
  forgetting: Forgetting | undefined,
  isOver: (sentAt: number) => boolean,
): string[] {
  const isExcused = (sentAt: number): boolean =>
    forgetting !== undefined && sentAt < forgetting.endedAt;
  // A withdrawal can be forgotten, and an approval for which another client had stopped to wait.
  const forgotten = forgetting ? undecided : 0;
  const found: string[] = [];
  if (ids.length > maximum) found.push('more approvals than the maximum');
  // A key that was lost with its waiters counts as full until its window ends.
  const mayBeFull = forgetting?.loses === 'memory' && approved === maximum;
  if (approved !== ids.length && !mayBeFull) found.push('the count differs from the number of ids');
  if (waiting > forgotten) found.push('places in the queue that nobody waits in');

  const stored = new Set(ids);
  const missing = [...held].filter(([id]) => !stored.has(id)).map(([, sentAt]) => sentAt);
  if (![...missing, ...notFound].every((sentAt) => isExcused(sentAt) || isOver(sentAt)))
    found.push('approvals that clients were told of, and Redis does not have');

  const unreleased = ids.filter((id) => released.has(id));
  if (unreleased.some((id) => !isExcused(released.get(id)!))) {
    found.push('approvals that were released, and count');
  }

  const others = ids.filter((id) => !held.has(id) && !released.has(id)).length;
  const [fewest, most] = [counted.filter((at) => !isExcused(at)).length, counted.length];
  if (others < fewest) found.push('approvals that gateways were told of, and Redis does not have');
  if (others > most + forgotten) {
    found.push('approvals that nobody was told of');
  }
  return found;
}
