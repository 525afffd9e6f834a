import { isDeepStrictEqual } from 'node:util';

import type { QueueList } from '../../../src/limiter/queue-order.js';
import type { JudgedCall, JudgedWorld } from './judged-call.js';
import { isIdle } from './snapshot.js';
import { headsFault, listIdOf } from './stored-lists.js';
import { Violation } from './violation.js';

/** Of a queue with several lists: its heads are those of its lists, and nobody changes lists. */
export function checkLists(call: JudgedCall, world: JudgedWorld): void {
  const { stored, after } = call;
  if (!after.isConsistent) return;
  const fault = headsFault(after);
  // What is left of the state of a key that is idle may tell of a queue that is gone.
  if (fault && !isIdle(after, call.run.now) && mustHaveHeads(call)) throw fault;
  for (const [id, place] of after.waiting) {
    const before = stored.waiting.get(id);
    const { checks } = world.requestOf(id)!;
    const isKept =
      before?.ticket === place.ticket
        ? isDeepStrictEqual(before.list, place.list)
        : checks.some((check) => isSameList(check.list, place.list));
    if (!isKept)
      throw new Violation('a waiter stays in its list', `${id} is in ${listIdOf(place)}`);
  }
}

/** Heads that are lost come back with the next settle, or before anybody is served. */
function mustHaveHeads({ run, stored, after, approved, isTorn }: JudgedCall): boolean {
  const wereThere = !isTorn && stored.isConsistent && !headsFault(stored);
  const isServed = approved.some((id) => stored.waiting.has(id));
  return wereThere || isServed || (run.script === 'settle' && after.waiting.size > 0);
}

/** The most that may wait in a group is not kept. */
function isSameList(asked: QueueList | undefined, stored: QueueList | undefined): boolean {
  const withoutMost = asked?.kind === 'group' ? { ...asked, maxRequests: undefined } : asked;
  return isDeepStrictEqual(withoutMost, stored);
}
