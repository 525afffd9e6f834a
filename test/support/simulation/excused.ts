import { luaNumber } from '../lua-constants.js';
import { VERDICT } from '../../../src/redis/scripts/check-codec.js';
import { type JudgedCall, verdictsIn } from './judged-call.js';
import type { ScriptRun } from './script-run.js';
import { LIMIT_NAMES } from './shape.js';
import { countsAt, generationsOf, hasLease, idsOf, isIdle, type Snapshot } from './snapshot.js';
import { withRestoredHeads } from './stored-lists.js';
import { requestsKnown } from './stored-requests.js';

const LEAST_BETWEEN_SETTLES = luaNumber('lib/room', 'LEAST_BETWEEN_SETTLES');
const RULES_STAY_MILLIS = luaNumber('lib/in-force', 'RULES_STAY_MILLIS');

/**
 * Whether the stored state does not tell the model all that decides a call: after a loss of memory, and where batches of one
 * call change what the next ones go by. The next call is judged by what is stored then.
 */
export function isExcused(call: JudgedCall): boolean {
  const { run, stored, after, approved } = call;
  const { now, batches, script } = run;
  const { state } = after;
  // A replica tells what it knows of a key that Redis has lost.
  if (state && run.lowestTicket < state.born * 1000) return true;
  // A length that a replica has told of counts from the next window on, also if it is the one of this window.
  if (stored.state && stored.state.nextWindow === stored.state.window) return true;
  // After a step of Redis's clock. The clock of the embedded limiter never goes back.
  if (hasLaterApprovals(stored) || hasLaterApprovals(after)) return true;
  const wasIdle = isIdle(stored, now);
  // Of a key that is begun again by a call that puts waiters back, or that shows that Redis was down.
  if (wasIdle && (script === 'settle' || (state?.recoveryUntil ?? 0) > now)) return true;
  // It keeps its distance from the last grant, which the model has forgotten.
  if (call.beginsKey && (stored.state?.served ?? 0) + LEAST_BETWEEN_SETTLES > now) return true;
  // A key that was idle may leave records of requests with ids of their callers, or not.
  const areRemembered = requestsKnown(stored).size === 0 || now < (stored.state?.named ?? 0);
  if (call.beginsKey && !areRemembered) return true;
  // Rules that come into force with one batch are newer than those of the next.
  if (new Set(batches.map(({ rules }) => JSON.stringify(rules))).size > 1) return true;
  // One batch may set what the ceilings of the next drop. Then other rules, or those of now, are in force in between.
  const hasCeilings = batches.some((batch) => batch.rules.ceilings?.windowMillis !== Infinity);
  if (batches.length > 1 && hasCeilings) return true;
  // The first check that joins the queue renews the lease of its replica, whose other waiters count for the next check.
  const hasLapsed = idsOf(stored, run.replica).some((id) => stored.leases[id]! <= now);
  if (hasLapsed && script === 'check' && run.requestIds.length > 1) return true;
  if (hasDeadInLists(call)) return true;
  // A place that has outlived its longest wait and its replica takes room in the queue until its turn.
  const outlived = [...stored.waiting.values()].filter((place) => !countsAt(stored, place, now));
  if (outlived.some((place) => hasLease(stored, place, now))) return true;
  if (haveGroupsToWait(stored)) return true;
  // The key had forgotten the approval, but a limit has not. It counts there once.
  const ofOwn = stored.state?.stored ? [stored.requests] : [];
  const known = [...ofOwn, ...stored.limits.values()].flatMap((ids) => [...ids.keys()]);
  const named = requestsKnown(stored);
  const renewed = verdictsIn(call).filter(([{ id, owner }, verdict]) => {
    return owner !== undefined && verdict === VERDICT.approved && !named.has(id);
  });
  return [...approved, ...renewed.map(([{ id }]) => id)].some((id) => known.includes(id));
}

/** Whether groups that have been served wait behind waiters without a list, as after a loss of heads. */
function haveGroupsToWait(stored: Snapshot): boolean {
  const { kinds, virtualTime } = withRestoredHeads(stored).lists;
  const [fifo, group] = [kinds.indexOf('fifo'), kinds.indexOf('group')];
  return virtualTime > 0 && fifo >= 0 && fifo < group;
}

/** Whether places of dead replicas wait in one of several lists: they count there until their turns. */
function hasDeadInLists({ run, stored, after }: JudgedCall): boolean {
  const hasLists = [stored, after].some(({ lists }) => lists.kinds.length > 0);
  if (!hasLists || (after.state?.recoveryUntil ?? 0) > run.now) return false;
  return [...stored.waiting.values()].some((place) => !countsAt(stored, place, run.now));
}

/** Whether a token bucket has approvals that are later than its level. */
function hasLaterApprovals(snapshot: Snapshot): boolean {
  const { state } = snapshot;
  if (!state) return false;
  const limits = [{ name: undefined, stored: state.stored }, ...state.further];
  return limits.some(({ name, stored }) => {
    if (stored?.kind !== 'token_bucket') return false;
    const index = name === undefined ? 0 : 1 + LIMIT_NAMES.findIndex((each) => each === name);
    const ids = generationsOf(snapshot, index).flatMap((each) => [...each.values()]);
    return ids.some(({ mark }) => mark > stored.timeMicros);
  });
}

/** Whether the rules of a caller may be older than the limits in force, which stay then for some time. */
export function hasOlderRules(
  { rulesLoadedAt, now }: ScriptRun,
  state: Snapshot['state'],
): boolean {
  const since = Math.min(state?.limitsSince ?? 0, now);
  return rulesLoadedAt < since && now < since + RULES_STAY_MILLIS;
}
