import { isSameAlgorithm } from '../../../src/limiter/limits.js';
import { HEAD, VERDICT } from '../../../src/redis/scripts/check-codec.js';
import type { SimulatedClient, SimulatedRequest } from './client.js';
import type { RulesGiven } from './rules-given.js';
import type { CheckRun, ScriptRun } from './script-run.js';
import type { WorldShape } from './shape.js';
import { generationsOf, isIdle, type Snapshot } from './snapshot.js';
import { grantedIn, requestsKnown } from './stored-requests.js';

/** What a judge knows of a world beside the calls. */
export interface JudgedWorld {
  readonly shape: WorldShape;
  readonly rules: RulesGiven;
  /** The world's time, which never goes back. */
  readonly now: number;
  readonly hasLostMemory: boolean;
  requestOf(id: string): SimulatedRequest | undefined;
  requestOfTicket(ticket: number): SimulatedRequest | undefined;
  /** The check with this owner in Redis, `<replica>#<number>`. */
  checkOfOwner(owner: string): SimulatedClient | undefined;
  /** Whether everything comes to this replica without delay, and always has. */
  isPunctual(replica: string): boolean;
  /** Whether everything comes to this replica without delay while Redis is there, and soon after it is back. */
  returnsInTime(replica: string): boolean;
  /** The waiters that their replicas put back if Redis has lost them. */
  waitersToReturn(): Iterable<SimulatedRequest>;
}

/** What Redis has lost: everything, a part of a key other than the queue, a part of its queue, or nothing. */
export type Loss = 'everything' | 'a part' | 'queue';

/** A script call, and what it did. */
export interface JudgedCall {
  /** How many calls there were, this one included. */
  readonly number: number;
  readonly run: ScriptRun;
  readonly reply: unknown;
  /** What the call had to go by: what the call before has left, by Redis's time of this one. */
  readonly stored: Snapshot;
  readonly after: Snapshot;
  readonly messages: readonly string[];
  /** Those that it has approved. */
  readonly approved: readonly string[];
  /** It has found no such key, or one that was idle for too long. */
  readonly beginsKey: boolean;
  /** A part of the key is lost, so that only some of the rules can be held against it. */
  readonly isTorn: boolean;
}

/** Whether a call has found no such key, or one that was idle for too long. A recovery keeps a key. */
export function findsNoKey({ now }: ScriptRun, stored: Snapshot, { state }: Snapshot): boolean {
  if (!stored.state || stored.state.born !== state?.born) return true;
  const recoveryUntil = Math.max(stored.state.recoveryUntil, state.recoveryUntil);
  return isIdle({ ...stored, state: { ...stored.state, recoveryUntil } }, now);
}

/** Of two limits, also if the window of a calendar begins when the window of other rules has. */
function isSameWindow(before: Snapshot['state'], after: Snapshot['state']): boolean {
  if (!before || !after) return before === after;
  return before.start === after.start && isSameAlgorithm(before, after);
}

/** The mark of an approval in the own limit: another shows another approval. A fixed window has none. */
function markOf(snapshot: Snapshot, id: string): number | undefined {
  if (!snapshot.state?.stored) return undefined;
  return generationsOf(snapshot, 0)
    .find((ids) => ids.has(id))
    ?.get(id)?.mark;
}

/** Those that are approved after a call and were not before. */
export function newlyApproved(
  run: ScriptRun,
  stored: Snapshot,
  after: Snapshot,
  beginsKey: boolean,
): string[] {
  const { now } = run;
  const claimed = claimedBy(run, stored, after);
  // Only a fixed window ends as a whole.
  const goesOn = after.state?.stored ? !beginsKey : isSameWindow(stored.state, after.state);
  const inWindow = [...after.requests.keys()].filter(
    (id) => !goesOn || !stored.requests.has(id) || markOf(stored, id) !== markOf(after, id),
  );
  const held = [...after.holds].flatMap(([id, { lapsesAt }]) => {
    const before = stored.holds.get(id)?.lapsesAt ?? 0;
    return lapsesAt > now && before <= now ? [id] : [];
  });
  // A token bucket has the ids of held approvals as well.
  return [...new Set([...inWindow, ...held])].filter((id) => !claimed.includes(id));
}

/** The requests whose approvals were kept for their callers, and are theirs since a call. */
export function claimedBy(
  { now }: Pick<ScriptRun, 'now'>,
  stored: Snapshot,
  after: Snapshot,
): string[] {
  const known = requestsKnown(after);
  return [...grantedIn(stored).keys()].filter((id) => {
    const wasHeld = (stored.holds.get(id)?.lapsesAt ?? 0) > now;
    return wasHeld && known.get(id)?.is === 'approved';
  });
}

/** The checks of a call that were decided, and what it replied to each. */
export function verdictsIn({
  run,
  reply,
}: Pick<JudgedCall, 'run' | 'reply'>): (readonly [CheckRun, unknown])[] {
  const replies = run.script === 'check' && Array.isArray(reply) ? (reply as unknown[]) : [];
  let first = 0;
  return run.batches.flatMap(({ checks }) => {
    if (first >= replies.length || replies[first] === null || replies[first] instanceof Error) {
      first += 1;
      return [];
    }
    const verdicts = replies.slice(first + HEAD, first + HEAD + checks.length);
    first += HEAD + checks.length;
    return checks.map((check, i) => [check, verdicts[i]] as const);
  });
}

/**
 * The requests whose places or approvals a call withdraws, or gives back: those of checks to which they belong, those that
 * are released before their callers have approvals, and those whose wait a later check has ended.
 */
export function withdrawnBy(call: Pick<JudgedCall, 'run' | 'reply' | 'stored'>): Set<string> {
  const { run, stored } = call;
  const known = requestsKnown(stored);
  const ids = run.withdrawals
    .filter(({ id, owner }) => {
      const record = known.get(id);
      return owner === undefined || (record?.owner === owner && record.is !== 'released');
    })
    .map(({ id }) => id);
  // Of a lost key, a release is a 404 and leaves the places as they are: docs/reliability.md.
  if (run.script === 'release' && stored.state) {
    const unclaimed: readonly unknown[] = ['waiting', 'granted'];
    ids.push(...run.requestIds.filter((id) => unclaimed.includes(known.get(id)?.is)));
  }
  for (const [{ id }, verdict] of verdictsIn(call)) {
    if (verdict === VERDICT.waitExpired) ids.push(id);
  }
  return new Set(ids);
}
