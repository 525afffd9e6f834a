import type { ForEachLimit, Limit } from '../../../src/limiter/limits.js';
import type { Approvals } from '../../../src/limiter/memory/approvals.js';
import type { CountedLimit } from '../../../src/limiter/memory/limits/counted-limit.js';
import { createLimit } from '../../../src/limiter/memory/limits/kinds.js';
import { Window } from '../../../src/limiter/memory/limits/window.js';
import { stepsOf, type StoredLevel, type StoredSteps } from '../stored-counts.js';
import type { StoredState } from '../stored-state.js';
import { uuidOf } from './model-ids.js';
import { LIMIT_NAMES } from './shape.js';
import { generationsOf, type RecentId, type Snapshot } from './snapshot.js';

/** Before and after all that is stored. */
const LONG_AGO = 0;
const FOREVER = 1e15;
/** Ids that no request has: they bring a level to what is stored, and its excess. */
const DRAINED = 'drained';
const LEVEL = 'level';
const FULL = 'full';
const EXCESS = 'excess';
const FORGOTTEN = 'forgotten';
const EMPTIED = 'emptied';
/** More than any level. */
const EVERYTHING = Number.MAX_SAFE_INTEGER;

type Ids = ReadonlyMap<string, RecentId>;

/**
 * Gives a key of the embedded limiter those of its limits that are no fixed windows, as Redis has stored them: their
 * approvals are taken again, each at its time. Meanwhile their periods do not end.
 * @param rules the limits of the key
 */
export function restoreLimits(
  approvals: Approvals,
  stored: Snapshot & { readonly state: StoredState },
  rules: ForEachLimit<Limit>,
): void {
  const { state } = stored;
  // Nothing else can give a key a limit whose steps did not begin with its period.
  const limits = approvals.limits as unknown as CountedLimit[];
  const all = [{ start: state.start, stored: state.stored }, ...state.further];
  for (const [i, { start, stored: counts }] of all.entries()) {
    if (!counts) continue;
    const rule = rules[i]!;
    const window = i === 0 ? approvals.window : new Window(start, rule.windowMillis);
    window.restart(LONG_AGO, FOREVER);
    const create = (now: number, limit: Limit): CountedLimit =>
      createLimit(limit, window, approvals, now);
    const index = i === 0 ? 0 : 1 + LIMIT_NAMES.findIndex((name) => name === rule.name);
    const generations = generationsOf(stored, index);
    limits[i] =
      counts.kind === 'sliding_window'
        ? stepsAsStored(rule, counts, generations, create)
        : bucketAsStored(rule, counts, generations, create, window, start);
    window.restart(start, rule.windowMillis);
  }
}

/**
 * When a limit that is no fixed window has room for a number of hits, if nothing is given back and no hold ends; Infinity
 * if it never has. It moves on to that time.
 * @param from a time to which it has moved before
 */
export function firstRoom(limit: CountedLimit, from: number, hits: number): number {
  let at = from;
  for (;;) {
    limit.roll(at, limit.millis);
    if (limit.fitsAlone(hits)) return at;
    const next = limit.roomAt(hits);
    if (next <= at) return Infinity;
    at = next;
  }
}

type Create = (now: number, limit: Limit) => CountedLimit;

function stepsAsStored(
  rule: Limit,
  { stepStart, number, sums }: StoredSteps,
  generations: readonly Ids[],
  create: Create,
): CountedLimit {
  const { windowMillis, algorithm } = rule;
  const { stepMillis } = stepsOf(windowMillis, algorithm);
  const startOf = (each: number): number => stepStart - (number - each) * stepMillis;
  const ids = generations.flatMap((each) => [...each]);
  const marks = [...ids.map(([, { mark }]) => mark), ...sums.keys(), number];
  const limit = create(startOf(0), rule);
  for (const mark of [...new Set(marks)].sort((a, b) => a - b)) {
    limit.roll(startOf(mark), windowMillis);
    const before = limit.sum;
    for (const [id, { hits }] of ids.filter(([, each]) => each.mark === mark))
      take(limit, id, hits);
    // Hits that were carried over from other rules have no ids.
    limit.carry((sums.get(mark) ?? 0) - (limit.sum - before));
  }
  return limit;
}

function bucketAsStored(
  rule: Limit,
  stored: StoredLevel,
  generations: readonly Ids[],
  create: Create,
  window: Window,
  start: number,
): CountedLimit {
  const { windowMillis } = rule;
  const { level, timeMicros, generation, paceSinceMicros } = stored;
  // Approvals are stored with the hits that they took. A level may be above the bound of a burst that was lowered since.
  const algorithm = { name: 'token_bucket', burst: EVERYTHING } as const;
  const inHits: Limit = { ...rule, counts: 'hits', algorithm };
  const limit = create(LONG_AGO, { ...inHits, maximum: EVERYTHING });
  let hasPace = false;
  const moveTo = (micros: number): void => {
    if (!hasPace && micros >= paceSinceMicros) {
      hasPace = true;
      limit.roll(paceSinceMicros / 1000, windowMillis);
      limit.change(paceSinceMicros / 1000, inHits);
      window.restart(LONG_AGO, FOREVER);
    }
    limit.roll(micros / 1000, windowMillis);
  };
  const takeAll = (ids: Ids = new Map()): void => {
    for (const [id, { mark, hits }] of [...ids].sort(([, a], [, b]) => a.mark - b.mark)) {
      moveTo(mark);
      take(limit, id, hits);
    }
  };
  takeAll(generations[(generation + 1) % 2]);
  window.restart(start - windowMillis, windowMillis);
  limit.roll(start, windowMillis);
  window.restart(LONG_AGO, FOREVER);
  takeAll(generations[generation % 2]);
  moveTo(timeMicros);
  window.restart(start, windowMillis);
  // In two steps, since a sum may be rounded.
  take(limit, DRAINED, -limit.exactUsed);
  limit.roll(paceSinceMicros / 1000, windowMillis);
  restoreExcess(limit, stored);
  limit.roll(timeMicros / 1000, windowMillis);
  take(limit, LEVEL, level);
  limit.change(timeMicros / 1000, rule);
  return limit;
}

/**
 * Gives an empty bucket the excess that is stored. It has been rolled to the time since when its pace is the same, and its
 * burst is its maximum.
 */
function restoreExcess(limit: CountedLimit, { highMaximum, excess }: StoredLevel): void {
  const { maximum } = limit;
  // A higher maximum adds the excess that the approvals may have left to the level.
  limit.maximum = EVERYTHING;
  take(limit, FORGOTTEN, -limit.exactUsed);
  if (highMaximum > 0) {
    limit.maximum = highMaximum;
    // The level has room for the highest bit of the excess only, so the rest is taken later. Without excess the maximum is 0.
    const first = excess > 0 ? 2 ** Math.floor(Math.log2(excess)) : 1;
    take(limit, FULL, 2 * maximum + first);
    limit.maximum = maximum;
    take(limit, EXCESS, excess > 0 ? excess - first : 0);
  }
  limit.maximum = maximum;
  take(limit, EMPTIED, -limit.exactUsed);
}

function take(limit: CountedLimit, id: string, hits: number): void {
  limit.take(uuidOf(id), hits, false);
}
