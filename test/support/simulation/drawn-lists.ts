import type { QueueList } from '../../../src/limiter/queue-order.js';
import type { Random } from '../chaos/random.js';
import { listOf } from '../stored-queue.js';

/** What makes waiters leave and come back. Worlds with lists have more of it. */
export const MOVES_OF_WAITERS = ['leave', 'kill', 'freeze', 'lose memory', 'tear queue'] as const;

const LANES = ['a', 'b', 'c'] as const;
const GROUPS = ['x', 'y', ''] as const;
/** How often the rules of a key get another order. */
const RELOAD_CHANCE = 0.06;

/** Draws the lanes or groups that checks name, by rules that are loaded again now and then. */
export class DrawnLists {
  #order: readonly QueueList[] = [];

  constructor(private readonly random: Random) {
    this.#reload();
  }

  /** What a check says. */
  words(): string[] {
    const { random } = this;
    if (random.chance(RELOAD_CHANCE)) this.#reload();
    if (this.#order.length === 0) return [];
    return [`list=${textOfList(random.pick(this.#order))}`];
  }

  #reload(): void {
    const { random } = this;
    const draw = random.next();
    if (draw < 0.45)
      this.#order = LANES.slice(0, random.whole(2, 3)).map((name) => this.#lane(name));
    else if (draw < 0.9) this.#order = GROUPS.map((name) => this.#group(name, this.#most()));
    else this.#order = [];
  }

  #lane(name: string): QueueList {
    const { random } = this;
    const headStartMillis = random.pick([0, random.whole(1, 50), random.whole(100, 900)]);
    return { kind: 'lane', name, headStartMillis };
  }

  #group(name: string, maxRequests: number | undefined): QueueList {
    return { kind: 'group', name, weight: this.random.pick([1, 1, 2, 3, 7]), maxRequests };
  }

  #most(): number | undefined {
    return this.random.chance(0.3) ? this.random.whole(1, 4) : undefined;
  }
}

/** A lane or a group as actions name it. */
function textOfList(list: QueueList): string {
  const id = `${list.kind}:${encodeURIComponent(list.name)}`;
  if (list.kind === 'lane') return `${id}:${list.headStartMillis}`;
  const most = list.maxRequests === undefined ? '' : `:${list.maxRequests}`;
  return `${id}:${list.weight}${most}`;
}

/** A lane or a group as actions name it; undefined for ''. */
export function listIn(text = ''): QueueList | undefined {
  const [, id = '', parameter, most] = /^([a-z]+:[^:]*):(\d+):?(\d*)$/.exec(text) ?? [];
  return parameter === undefined
    ? undefined
    : listOf(id, Number(parameter), most ? Number(most) : undefined);
}
