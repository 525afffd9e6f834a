import type { QueueList } from '../../../src/limiter/queue-order.js';
import type { Random } from '../chaos/random.js';
import { listOf } from '../stored-queue.js';
import { GROUPS } from './shape.js';

/** What makes waiters leave and come back. Worlds with lists have more of it. */
export const MOVES_OF_WAITERS = ['leave', 'kill', 'freeze', 'lose memory', 'tear queue'] as const;

const LANES = ['a', 'b', 'c'] as const;
/** How often the rules of a key get another order. */
const RELOAD_CHANCE = 0.06;
/** How many of these have lanes, and groups. */
const SHARES = { lanes: 0.45, groups: 0.45 };
/** The same where each group has limits to itself. */
const SHARES_WITH_LIMITS_OF_GROUPS = { lanes: 0.05, groups: 0.9 };
/** Some groups have lanes inside. */
const LANES_INSIDE_CHANCE = 0.3;

/** Draws the lanes or groups that checks name, by rules that are loaded again now and then. */
export class DrawnLists {
  #order: readonly QueueList[] = [];
  /** Of the lanes inside groups. */
  #headStarts: readonly number[] = [0];
  readonly #insideRandom: Random;

  constructor(
    private readonly random: Random,
    private readonly haveLimits: boolean,
  ) {
    this.#insideRandom = random.fork('inside');
    this.#reload();
  }

  /** What a check says. */
  words(): string[] {
    const { random } = this;
    if (random.chance(RELOAD_CHANCE)) this.#reload();
    if (this.#order.length === 0) return [];
    const list = random.pick(this.#order);
    if (list.kind === 'lane') return [`list=${textOfList(list)}`];
    const headStartMillis = this.#insideRandom.pick(this.#headStarts);
    return [`list=${textOfList({ ...list, headStartMillis })}`];
  }

  #reload(): void {
    const { random } = this;
    const draw = random.next();
    const { lanes, groups } = this.haveLimits ? SHARES_WITH_LIMITS_OF_GROUPS : SHARES;
    if (draw < lanes)
      this.#order = LANES.slice(0, random.whole(2, 3)).map((name) => this.#lane(name));
    else if (draw < lanes + groups) {
      this.#order = GROUPS.map((name) => this.#group(name, this.#most()));
    } else this.#order = [];
    const inside = this.#insideRandom;
    this.#headStarts = inside.chance(LANES_INSIDE_CHANCE) ? [0, this.#headStart(inside)] : [0];
  }

  #lane(name: string): QueueList {
    return { kind: 'lane', name, headStartMillis: this.#headStart(this.random) };
  }

  #headStart(random: Random): number {
    return random.pick([0, random.whole(1, 50), random.whole(100, 900)]);
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
  const { weight, maxRequests = '', headStartMillis } = list;
  return `${id}:${weight}:${maxRequests}:${headStartMillis ?? 0}`.replace(/:?:0$/, '');
}

/** A lane or a group as actions name it; undefined for ''. */
export function listIn(text = ''): QueueList | undefined {
  const [, id = '', parameter, most, headStart] =
    /^([a-z]+:[^:]*):(\d+):?(\d*):?(\d*)$/.exec(text) ?? [];
  if (parameter === undefined) return undefined;
  const [maxRequests, headStartMillis] = [most, headStart].map((of) =>
    of ? Number(of) : undefined,
  );
  return listOf(id, Number(parameter), maxRequests, headStartMillis);
}
