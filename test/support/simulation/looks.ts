import { isDeepStrictEqual } from 'node:util';

import { decodeStatuses } from '../../../src/redis/scripts/looks-codec.js';
import type { ScriptRun } from './script-run.js';
import { hasLease, type Snapshot } from './snapshot.js';
import { listIdOf } from './stored-lists.js';
import type { Change } from './stored-key.js';
import { Violation } from './violation.js';

/** A call that looks at requests changes nothing, and says how many wait before each. */
export function checkLook(run: ScriptRun, reply: unknown, { before, after }: Change): void {
  // Some of the names may have expired since the call before.
  if (!isDeepStrictEqual(after, { ...before, keys: after.keys, past: after.past })) {
    throw new Violation('a look changes nothing', run.own.join(' '));
  }
  if (!before.isConsistent) return;
  for (const [i, status] of decodeStatuses(reply).entries()) {
    if (status?.status !== 'waiting') continue;
    const { recoveryUntil = 0 } = before.state ?? {};
    // If no call has ended it, it begins again, unless the caller knows better.
    if (recoveryUntil > 0 && recoveryUntil <= run.now) continue;
    const expected = positionOf(before, run.own[i]!, run.now);
    if (status.position === expected) continue;
    const detail = `${run.own[i]} is told ${status.position}, not ${expected}`;
    throw new Violation('a position counts those who wait before', detail);
  }
}

function positionOf(snapshot: Snapshot, id: string, now: number): number {
  const { waiting, lists, state } = snapshot;
  const isRecovering = (state?.recoveryUntil ?? 0) > now;
  const place = waiting.get(id)!;
  const ofList = [...waiting.values()].filter((other) => listIdOf(other) === listIdOf(place));
  const before = ofList.filter(({ ticket }) => ticket < place.ticket);
  // Of several lists, each counts all of its entries.
  if (isRecovering || lists.kinds.length > 0) return before.length + 1;
  return before.filter((other) => hasLease(snapshot, other, now)).length + 1;
}
