import { isDeepStrictEqual } from 'node:util';

import type { LimitInForce } from '../../../src/limiter/limits.js';
import type { KeyNames } from '../../../src/redis/shared/key-names.js';
import { type AccountedWaiter, type ListOfWaiter, TurnsAccount } from '../turns-account.js';
import type { MonitoredCommand } from './server-monitor.js';

/** What a script did to the waiters, besides approvals. */
type Change =
  | { readonly kind: 'joined'; readonly entries: readonly string[] }
  | { readonly kind: 'left'; readonly ids: readonly string[] }
  | { readonly kind: 'turns'; readonly ids: readonly string[] }
  | { readonly kind: 'removed' };

/** Judges the turns of the waiters of one key as scripts give them, if its queue has several lists. */
export class ListedTurns {
  #turns: TurnsAccount;
  #changes: Change[] = [];
  #limits: readonly LimitInForce[] = [];

  /** @param entries of the queue that wait: see lua/queue/entries.lua */
  constructor(
    private readonly names: KeyNames,
    entries: readonly string[] = [],
  ) {
    this.#turns = this.#newAccount();
    this.#join(entries);
  }

  /** The heads of lanes and groups, before the script under way. */
  get heads(): readonly AccountedWaiter[] {
    return this.#turns.heads.filter(({ list }) => list.kind !== 'fifo');
  }

  /** Follows a command of a script. @returns the ids of waiters that it adds */
  follow({ name, args }: MonitoredCommand): readonly string[] {
    const [key, ...rest] = args;
    const { queue, waiting, wakeChannel } = this.names;
    if (name === 'unlink' && args.includes(queue)) this.#changes.push({ kind: 'removed' });
    else if (key === waiting && name === 'hdel') this.#changes.push({ kind: 'left', ids: rest });
    else if (key === wakeChannel && name.endsWith('publish')) {
      const { granted = [] } = JSON.parse(rest[0]!) as { granted?: string[] };
      this.#changes.push({ kind: 'turns', ids: granted });
    } else if (key === queue && name === 'zadd') {
      const entries = rest.filter((_, i) => i % 2 === 1);
      this.#changes.push({ kind: 'joined', entries });
      return entries.map(idOfEntry);
    }
    return [];
  }

  /** Nobody waits any more. */
  forget(): void {
    this.#turns = this.#newAccount();
    this.#changes = [];
  }

  /**
   * The script of the last commands has ended.
   * @param approved the ids that it approved
   * @param limits of the key, as far as they are known
   * @returns how many turns it gave, and the promises that it broke
   */
  endOfScript(
    approved: ReadonlySet<string>,
    limits: readonly LimitInForce[] = [],
  ): { readonly turns: number; readonly violations: readonly string[] } {
    const changes = this.#changes;
    this.#changes = [];
    // Whoever leaves without an approval, such as a waiter of a dead replica, is passed by nobody.
    for (const change of changes) {
      if (change.kind !== 'left') continue;
      for (const id of change.ids) if (!approved.has(id)) this.#turns.left(id);
    }
    // A script may serve by the limits that it found.
    this.#limits = isDeepStrictEqual(this.#limits, limits) ? limits : [...this.#limits, ...limits];
    // A script names all who had turns, in their order, when it ends.
    const named = changes.flatMap((change) => (change.kind === 'turns' ? change.ids : []));
    const violations: string[] = [];
    let turns = 0;
    const giveTurns = (to: (id: string) => boolean): void => {
      const ids = named.filter((id) => to(id) && this.#waits(id));
      turns += ids.length;
      this.#turns.granted(ids);
      violations.push(...this.#turns.violations.splice(0));
    };
    for (const [i, change] of changes.entries()) {
      if (change.kind === 'left') giveTurns((id) => change.ids.includes(id));
      if (change.kind === 'joined') this.#join(change.entries);
      if (change.kind !== 'removed') continue;
      // A queue of which all have turns is removed as a whole.
      if (!this.#areAddedAgain(changes.slice(i))) giveTurns(() => true);
      this.#turns = this.#newAccount();
    }
    this.#limits = limits;
    return { turns, violations };
  }

  /** Whether waiters are added again: in new lists, all groups begin again. */
  #areAddedAgain(changes: readonly Change[]): boolean {
    return changes.some(
      (change) =>
        change.kind === 'joined' && change.entries.some((entry) => this.#waits(idOfEntry(entry))),
    );
  }

  #newAccount(): TurnsAccount {
    return new TurnsAccount((waiter, other) => this.#mayPass(waiter, other));
  }

  #join(entries: readonly string[]): void {
    for (const entry of entries) {
      const waiter = waiterIn(entry);
      if (!this.#waits(waiter.id)) this.#turns.joined(waiter);
    }
  }

  #waits(id: string): boolean {
    return this.#turns.waiting.some((waiter) => waiter.id === id);
  }

  /** A limit that counts only some lanes stops no other lane. */
  #mayPass({ list }: AccountedWaiter, other: AccountedWaiter): boolean {
    return isCountedAlone(this.#limits, other.list.name, list.name);
  }
}

/** Whether a limit counts a lane, and not the other one. */
export function isCountedAlone(
  limits: readonly Pick<LimitInForce, 'lanes'>[],
  lane: string,
  other: string,
): boolean {
  return limits.some(({ lanes }) => lanes?.includes(lane) === true && !lanes.includes(other));
}

const ENTRY = /^(\w+:\S*) (\d+):([^@*~^]*)(?:\*(\d+))?(?:~\d+)?(?:\^(\d+))?@/;

export function idOfEntry(entry: string): string {
  return waiterIn(entry).id;
}

/** @throws Error if the text is no entry of a queue with several lists */
function waiterIn(entry: string): AccountedWaiter {
  const [, list = '', ticket, id = '', hits = '1', parameter] = ENTRY.exec(entry) ?? [];
  if (list === '') throw new Error(`no entry of a list: ${entry}`);
  return {
    id,
    hits: Number(hits),
    arrival: Number(ticket) / 1000,
    list: listIn(list, Number(parameter)),
  };
}

/** @param parameter the head start of a lane, or the weight of a group */
function listIn(id: string, parameter: number): ListOfWaiter {
  const [kind, name = ''] = id.split(':');
  if (kind === 'lane') return { kind, name, headStartMillis: parameter };
  if (kind === 'group') return { kind, name, weight: parameter, maxRequests: undefined };
  return { kind: 'fifo', name };
}
