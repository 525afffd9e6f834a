import type { JudgedCall } from './judged-call.js';
import { countsAt, type Snapshot, Violation } from './snapshot.js';
import { inOrder, kindOf, listIdOf, shareOf } from './stored-lists.js';

/** Sums of fractions may differ by this. */
const ROUNDED = 1e-6;

/** Of two groups that wait all the time: what each has got, and its largest request, divided by their weights. */
interface Pair {
  readonly got: [number, number];
  readonly most: [number, number];
}

/** (e) What groups that wait get of a key, over all calls. */
export class SharesSeen {
  /** By the ids of both lists. */
  #pairs = new Map<string, Pair>();

  judge(call: JudgedCall): void {
    this.#checkTags(call);
    const ids = groupsThatWait(call);
    const before = this.#pairs;
    this.#pairs = new Map();
    for (const [i, one] of ids.entries()) {
      for (const other of ids.slice(i + 1)) {
        const pair = before.get(`${one} ${other}`) ?? { got: [0, 0], most: [0, 0] };
        this.#pairs.set(`${one} ${other}`, pair);
        addTo(pair, [one, other], call);
        const [got, otherGot] = pair.got;
        const bound = pair.most[0] + pair.most[1] + ROUNDED;
        if (Math.abs(got - otherGot) <= bound) continue;
        const detail = `${one} got ${got}, ${other} got ${otherGot}, and not within ${bound}`;
        throw new Violation('groups that wait share by their weights', detail);
      }
    }
  }

  /** Nobody has a turn before one with a lower tag, and a group that comes back has no lower tag than one that comes. */
  #checkTags({ stored, after, approved }: JudgedCall): void {
    const { lists, waiting } = after;
    const isBelow = (tag: number, least: number): boolean => tag < least - ROUNDED;
    for (const [id, { key }] of lists.heads) {
      if (!id.startsWith('group:') || !isBelow(key, lists.virtualTime)) continue;
      const detail = `${id} has ${key}, and others were served up to ${lists.virtualTime}`;
      throw new Violation('the lowest tag has the next turn', detail);
    }
    // Where no group has waited in between, they begin again.
    const goOn = [...stored.waiting].some(([id, it]) => kindOf(it) === 'group' && waiting.has(id));
    const [before, now] = [stored, after].map((each) => firstsOf(each));
    for (const id of goOn ? stored.lists.stopped.keys() : []) {
      const first = before!.get(id) ?? '';
      const head = stored.waiting.get(first);
      if (!head || lists.stopped.has(id)) continue;
      const isHead = now!.get(id) === first;
      // The virtual time is at least the tag of one that was served.
      const tag = approved.includes(first) ? lists.virtualTime : isHead && lists.heads.get(id)?.key;
      const least = stored.lists.virtualTime + shareOf(head);
      if (typeof tag !== 'number' || !isBelow(tag, least)) continue;
      throw new Violation(
        'a group gains nothing by having been stopped',
        `${id} has ${tag}, not ${least}`,
      );
    }
  }
}

/** The ids of the first waiters, by the ids of their lists. */
function firstsOf({ waiting }: Pick<Snapshot, 'waiting'>): Map<string, string> {
  return new Map(
    inOrder(waiting)
      .map(([id, place]) => [listIdOf(place), id] as const)
      .reverse(),
  );
}

/** The groups that have waited before a call and wait on, which waiters have left by approvals only, and which are not stopped. */
function groupsThatWait({ run, stored, after, approved }: JudgedCall): string[] {
  const recoveryUntil = Math.max(stored.state?.recoveryUntil ?? 0, after.state?.recoveryUntil ?? 0);
  const kinds = [stored, after].map(({ lists }) => lists.kinds[0]);
  if (recoveryUntil > run.now || kinds.some((kind) => kind !== 'group')) return [];
  const ids = [...stored.lists.heads.keys()].filter((id) => id.startsWith('group:'));
  return ids.toSorted().filter((id) => {
    if (!after.lists.heads.has(id)) return false;
    const was = [...stored.waiting].filter(([, place]) => listIdOf(place) === id);
    return (
      stored.waiting.has(firstsOf(after).get(id) ?? '') &&
      was.every(
        ([each, place]) =>
          countsAt(stored, place, run.now) && (after.waiting.has(each) || approved.includes(each)),
      )
    );
  });
}

function addTo(pair: Pair, ids: readonly [string, string], { stored, approved }: JudgedCall): void {
  for (const [id, place] of stored.waiting) {
    const i = kindOf(place) === 'group' ? ids.indexOf(listIdOf(place)) : -1;
    if (i < 0) continue;
    const at = i as 0 | 1;
    pair.most[at] = Math.max(pair.most[at], shareOf(place));
    if (approved.includes(id)) pair.got[at] += shareOf(place);
  }
}
