import type { QueueList } from '../../src/limiter/queue-order.js';

/** A lane, a group, or the list of waiters without either. */
export type ListOfWaiter = QueueList | { readonly kind: 'fifo'; readonly name: string };

/** A waiter as its caller knows it. */
export interface AccountedWaiter {
  readonly id: string;
  readonly list: ListOfWaiter;
  readonly hits: number;
  /** In milliseconds of the clock that gives turns. */
  readonly arrival: number;
}

/** What two groups have got, by weight, while both have waited. */
interface Together {
  /** What the first has got less what the second has. */
  difference: number;
  /** The least difference since a head of the second left, and the greatest since a head of the first left. */
  least: number;
  greatest: number;
  readonly largest: [number, number];
}

/** Of sums of shares. */
const ROUNDING = 1e-9;

const shareOf = ({ list, hits }: AccountedWaiter): number =>
  list.kind === 'group' ? hits / list.weight : hits;
const nameOf = ({ list }: AccountedWaiter): string => `${list.kind}:${list.name}`;
const keyInLanes = ({ list, arrival }: AccountedWaiter): number =>
  arrival - (list.kind === 'lane' ? list.headStartMillis : 0);

/**
 * An account of who waits and who gets turns, which knows nothing of how turns are given, only what is promised:
 * - in a list, turns come in the order of arrival
 * - of the heads of two lanes, the one goes first that came earlier, less its head start
 * - of two groups, none gets more, by weight, than the other while both wait, up to the largest request of each. A group gets
 *   less if a head of it leaves.
 */
export class TurnsAccount {
  readonly violations: string[] = [];
  readonly #waiting = new Map<string, AccountedWaiter>();
  /** By the names of two groups. */
  readonly #together = new Map<string, Together>();

  /** @param mayPass whether a limit may stop the lane of the other one, and not the lane of the waiter */
  constructor(
    private readonly mayPass: (waiter: AccountedWaiter, other: AccountedWaiter) => boolean = () =>
      false,
  ) {}

  get waiting(): readonly AccountedWaiter[] {
    return [...this.#waiting.values()];
  }

  joined(waiter: AccountedWaiter): void {
    this.#waiting.set(waiter.id, waiter);
    for (const pair of this.#pairsOf(nameOf(waiter))) {
      const together = this.#together.get(pair.key) ?? {
        ...{ difference: 0, least: 0, greatest: 0 },
        largest: [0, 0],
      };
      for (const each of this.#waiting.values()) {
        const i = pair.names.indexOf(nameOf(each));
        if (i >= 0) together.largest[i] = Math.max(together.largest[i] ?? 0, shareOf(each));
      }
      this.#together.set(pair.key, together);
    }
  }

  /** It leaves without a turn. */
  left(id: string): void {
    const waiter = this.#waiting.get(id);
    if (!waiter) return;
    const isHead = !this.waiting.some(
      (other) => nameOf(other) === nameOf(waiter) && this.#isEarlier(other, waiter),
    );
    for (const [together, isFirst] of isHead ? this.#togetherWith(waiter) : []) {
      if (isFirst) together.greatest = together.difference;
      else together.least = together.difference;
    }
    this.#remove(waiter);
  }

  /** The requests got their turns, in this order. */
  granted(ids: readonly string[]): void {
    for (const id of ids) this.#granted(id);
  }

  /** Those of which one has its turn next: the head of the lane that is due, or the heads of all groups. */
  get next(): AccountedWaiter[] {
    const { heads } = this;
    if (heads[0]?.list.kind !== 'lane') return heads;
    const first = Math.min(...heads.map(keyInLanes));
    return heads.filter((head) => keyInLanes(head) === first);
  }

  /** The first of each list. */
  get heads(): AccountedWaiter[] {
    const heads = new Map<string, AccountedWaiter>();
    for (const each of this.#waiting.values()) {
      const head = heads.get(nameOf(each));
      // One that is put back may have arrived before those that wait.
      if (!head || each.arrival < head.arrival) heads.set(nameOf(each), each);
    }
    return [...heads.values()];
  }

  #granted(id: string): void {
    const waiter = this.#waiting.get(id);
    if (!waiter) {
      this.violations.push(`${id} got a turn and did not wait`);
      return;
    }
    for (const other of this.#waiting.values()) this.#judgeInList(waiter, other);
    if (waiter.list.kind === 'lane') this.#judgeHeads(waiter);
    for (const [together, isFirst, pair] of this.#togetherWith(waiter)) {
      together.difference += isFirst ? shareOf(waiter) : -shareOf(waiter);
      const { difference, largest } = together;
      together.least = Math.min(together.least, difference);
      together.greatest = Math.max(together.greatest, difference);
      const gained = isFirst ? difference - together.least : together.greatest - difference;
      const most = largest[0] + largest[1] + ROUNDING;
      if (gained > most) {
        this.violations.push(`${nameOf(waiter)} of ${pair} gained ${gained}, more than ${most}`);
      }
    }
    this.#remove(waiter);
  }

  #remove(waiter: AccountedWaiter): void {
    this.#waiting.delete(waiter.id);
    this.#endIfEmpty(nameOf(waiter));
  }

  /** The pairs of the group of a waiter, and whether it is the first of the pair. */
  #togetherWith(waiter: AccountedWaiter): [Together, isFirst: boolean, pair: string][] {
    return [...this.#together].flatMap(([pair, together]) => {
      const i = (JSON.parse(pair) as string[]).indexOf(nameOf(waiter));
      return i < 0 ? [] : [[together, i === 0, pair]];
    });
  }

  #judgeInList(waiter: AccountedWaiter, other: AccountedWaiter): void {
    if (other.id === waiter.id) return;
    if (nameOf(waiter) === nameOf(other) && this.#isEarlier(other, waiter)) {
      this.violations.push(`${waiter.id} passed ${other.id} in its list`);
    }
  }

  /** Behind the head of its lane, a waiter with a greater head start, by other rules, has no turn. */
  #judgeHeads(waiter: AccountedWaiter): void {
    for (const head of this.heads) {
      if (head.list.kind !== 'lane' || nameOf(head) === nameOf(waiter)) continue;
      if (keyInLanes(head) < keyInLanes(waiter) && !this.mayPass(waiter, head)) {
        this.violations.push(`${waiter.id} passed ${head.id}, which came too early for that`);
      }
    }
  }

  /** Waiters that arrived at the same time are in the order in which they joined. */
  #isEarlier(one: AccountedWaiter, other: AccountedWaiter): boolean {
    if (one.arrival !== other.arrival) return one.arrival < other.arrival;
    const ids = [...this.#waiting.keys()];
    return ids.indexOf(one.id) < ids.indexOf(other.id);
  }

  #pairsOf(name: string): { readonly key: string; readonly names: string[] }[] {
    if (!name.startsWith('group:')) return [];
    const others = new Set([...this.#waiting.values()].map(nameOf));
    others.delete(name);
    return [...others]
      .filter((other) => other.startsWith('group:'))
      .map((other) => {
        const names = [name, other].sort();
        return { key: JSON.stringify(names), names };
      });
  }

  #endIfEmpty(name: string): void {
    if ([...this.#waiting.values()].some((each) => nameOf(each) === name)) return;
    for (const key of this.#together.keys()) {
      if ((JSON.parse(key) as string[]).includes(name)) this.#together.delete(key);
    }
  }
}
