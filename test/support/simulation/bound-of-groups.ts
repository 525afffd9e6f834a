import { VERDICT } from '../../../src/redis/scripts/check-codec.js';
import { type JudgedCall, verdictsIn } from './judged-call.js';
import { type Snapshot, Violation } from './snapshot.js';
import { kindOf, listIdOf } from './stored-lists.js';

/**
 * (f) A key has no more groups than it may have, but for those of waiters: these had room as they joined. It has room for a new one
 * as soon as another is idle.
 */
export function checkBoundOfGroups(call: JudgedCall, most: number): void {
  const { run, reply, stored, after } = call;
  const { script, batches, now } = run;
  const [{ checks, maxGroups } = {}] = batches;
  // A check may join, and another take the room before it is approved. Plain checks say no bound.
  const isCheck = batches.length === 1 && checks?.length === 1 && maxGroups !== undefined;
  const isJudged = isCheck || script === 'pause';
  if (!isJudged || stored.state?.groupsNumber !== after.state?.groupsNumber) return;
  const fromQueue = call.approved.flatMap((id) => {
    const place = stored.waiting.get(id);
    return place ? [listIdOf(place)] : [];
  });
  const refused = refusedGroup(call);
  if (refused !== undefined) {
    const busy = busyGroups(after, now);
    // It may have been served after that.
    const isBusy = busy.includes(refused) && !fromQueue.includes(refused);
    if (busy.length >= most && !isBusy) return;
    throw new Violation(
      'a group is refused only where the key is full of others',
      `${refused} with ${busy.join(' ')}, of ${most}, by ${String(reply)}`,
    );
  }
  const others = [...after.groups.keys()].filter((id) => !stored.groups.has(id));
  const isGrown = others.some((id) => !fromQueue.includes(id));
  if (!isGrown || after.groups.size - fromQueue.length <= most) return;
  throw new Violation(
    'a key has no more groups than it may have',
    `${[...after.groups.keys()].join(' ')} of ${most}`,
  );
}

/** The group for which a call has found no room; undefined if there is none. */
function refusedGroup(call: JudgedCall): string | undefined {
  const { run, reply } = call;
  if (run.script === 'pause') return reply === -1 ? run.own[2] : undefined;
  // No key is full of ids here.
  const full = verdictsIn(call).find(([, verdict]) => verdict === VERDICT.keyFull);
  return full && kindOf(full[0]) === 'group' ? listIdOf(full[0]) : undefined;
}

/** Those in which anything counts, by what is stored of them. */
function busyGroups({ state, groups }: Snapshot, now: number): string[] {
  return [...groups]
    .filter(
      ([, { number, idleAt, pausedUntil }]) =>
        (number === state?.groupsNumber && (idleAt === undefined || idleAt > now)) ||
        pausedUntil > now,
    )
    .map(([id]) => id);
}
