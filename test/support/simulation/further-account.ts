import { isDeepStrictEqual } from 'node:util';

import type { FurtherLimit } from '../further-limits.js';
import type { StoredLimit } from '../stored-state.js';
import { Violation } from './violation.js';

/** What held approvals take of limits together. */
export interface HeldSum {
  readonly hits: number;
  readonly approvals: number;
}

/** A further limit as the calls have made it. */
interface AccountedLimit {
  limit: FurtherLimit;
  start: number;
  /** What approvals took that Redis does not know any more, as of a key that is restored. */
  unknown: number;
  /** By id, what each approval takes that was given in this window. */
  readonly taken: Map<string, number>;
}

/** A further limit at one moment. */
export interface LimitNow extends FurtherLimit {
  readonly start: number;
  readonly end: number;
  readonly taken: number;
}

/**
 * What approvals take of each further limit of a key: an account of its own, that follows from the calls and from who
 * was approved by them alone.
 */
export class FurtherAccount {
  #limits: AccountedLimit[] = [];
  /** The names of limits that the rules have removed last. */
  #removed: string[] = [];

  constructor(private readonly held: () => HeldSum) {}

  get now(): LimitNow[] {
    return this.#limits.map((each) => ({
      ...each.limit,
      start: each.start,
      end: each.start + each.limit.windowMillis,
      taken: this.#takenOf(each),
    }));
  }

  get limits(): readonly FurtherLimit[] {
    return this.#limits.map(({ limit }) => limit);
  }

  /** The ids of approvals that count in the current window of any limit. */
  approvedAt(now: number): string[] {
    return this.#limits.flatMap(({ limit, start, taken }) =>
      now < start + limit.windowMillis ? [...taken.keys()] : [],
    );
  }

  /** A new key. */
  begin(now: number, limits: readonly FurtherLimit[]): void {
    this.#removed = [];
    this.#limits = limits.map((limit) => newLimit(now, limit));
  }

  /** Takes what is stored for granted, as of a key that was restored after a loss. */
  adopt(
    stored: readonly StoredLimit[],
    ids: ReadonlyMap<string, ReadonlyMap<string, number>>,
  ): void {
    this.#limits = stored.map(({ start, taken: sum, ...limit }) => {
      const taken = new Map(ids.get(limit.name));
      const each = { limit, start, unknown: 0, taken };
      return { ...each, unknown: sum - this.#takenOf(each) };
    });
  }

  /**
   * Redis's clock has gone back: windows that begin in the future begin now, with what was approved in them.
   * @param ids those that are stored. Others have expired after their windows, and count again if these go on
   */
  beginByNow(now: number, ids: ReadonlyMap<string, ReadonlyMap<string, number>>): void {
    for (const each of this.#limits) {
      each.start = Math.min(each.start, now);
      for (const [id, hits] of each.taken) {
        if (ids.get(each.limit.name)?.has(id)) continue;
        each.unknown += hits;
        each.taken.delete(id);
      }
    }
  }

  /** Windows that are over by now begin again. */
  roll(now: number): void {
    this.#removed = [];
    for (const each of this.#limits) {
      const start = startOfWindow(each.start, each.limit.windowMillis, now);
      if (start === each.start) continue;
      each.start = start;
      each.unknown = 0;
      each.taken.clear();
    }
  }

  /**
   * Other rules come into force: a limit whose length or maximum changes keeps what was approved, also if its window is
   * over by its new length.
   */
  take(now: number, limits: readonly FurtherLimit[]): void {
    this.#removed = this.#limits.flatMap(({ limit: { name } }) =>
      limits.some((limit) => limit.name === name) ? [] : [name],
    );
    this.#limits = limits.map((limit) => {
      const before = this.#limits.find(
        ({ limit: { name, counts, keepsReleased } }) =>
          name === limit.name && counts === limit.counts && keepsReleased === limit.keepsReleased,
      );
      if (!before) return newLimit(now, limit);
      return { ...before, limit, start: startOfWindow(before.start, limit.windowMillis, now) };
    });
  }

  /**
   * An id that a limit has already counts once.
   * @returns whether a limit had it
   */
  approve(id: string, hits: number, isHeld: boolean): boolean {
    const isKnown = this.#limits.some(({ taken }) => taken.has(id));
    for (const { limit, taken } of this.#limits) {
      if (isHeld && !limit.keepsReleased) continue;
      taken.set(id, takes(limit, hits));
    }
    return isKnown;
  }

  /** @returns whether any limit got something back */
  release(id: string, isUnused: boolean): boolean {
    const released = this.#limits.filter(
      ({ limit, taken }) => (isUnused || !limit.keepsReleased) && taken.delete(id),
    );
    return released.length > 0;
  }

  /** @returns whether the approval counts in any limit */
  amend(id: string, hits: number): boolean {
    const amended = this.#limits.filter(({ taken }) => taken.has(id));
    for (const { limit, taken } of amended) taken.set(id, takes(limit, hits));
    return amended.length > 0;
  }

  /** Whether each limit has room for one hit. */
  get hasRoom(): boolean {
    return this.now.every(({ taken, maximum }) => taken < maximum);
  }

  /** Whether an approval with `hits` hits fits into all limits. */
  fits(hits: number): boolean {
    return this.now.every((limit) => limit.taken + takes(limit, hits) <= limit.maximum);
  }

  /** The same for the head of the queue, which gets a window for itself if it needs more than a maximum. */
  fitsHead(hits: number): boolean {
    return this.now.every(
      (limit) => limit.taken + takes(limit, hits) <= limit.maximum || limit.taken === 0,
    );
  }

  /**
   * Limits are never taken beyond their maxima by approvals, but for one that has a window for itself.
   * @param approved the checks that a call has approved, with their hits
   */
  checkMaxima(approved: readonly { readonly id: string; readonly hits: number }[]): void {
    const [first, ...others] = approved;
    if (!first) return;
    for (const limit of this.now) {
      const isAlone = others.length === 0 && limit.taken === takes(limit, first.hits);
      if (limit.taken > limit.maximum && !isAlone) {
        const detail = `${limit.taken} of ${limit.maximum} in a window of ${limit.name}`;
        throw new Violation('no more than the maximum of each limit', detail);
      }
    }
  }

  /** Compares what the state says. */
  compareState(stored: readonly StoredLimit[]): void {
    const names = (limits: readonly { readonly name: string }[]): string =>
      limits.map(({ name }) => name).join(' ') || 'none';
    if (names(stored) !== names(this.limits)) {
      const detail = `${names(stored)}, not ${names(this.limits)}`;
      throw new Violation('a key has the further limits of its rules', detail);
    }
    for (const [i, { name, start, taken }] of this.now.entries()) {
      const is = stored[i]!;
      if (is.start !== start) {
        const detail = `${name} began ${is.start - start} ms later`;
        throw new Violation('windows of further limits are back to back', detail);
      }
      if (is.taken !== taken) {
        const detail = `${is.taken} of ${name} counted, not ${taken}`;
        throw new Violation('an approval counts once in each limit', detail);
      }
    }
  }

  /**
   * Compares the ids that are stored.
   * @param approved those that the call has approved
   */
  compareIds(
    ids: ReadonlyMap<string, ReadonlyMap<string, number>>,
    approved: readonly string[],
  ): void {
    for (const { limit, taken } of this.#limits) {
      const is = ids.get(limit.name) ?? new Map<string, number>();
      const missing = approved.find((id) => taken.has(id) !== is.has(id));
      if (missing !== undefined) {
        const detail = `${missing} ${is.has(missing) ? 'takes' : 'does not take'} of ${limit.name}`;
        throw new Violation('a check takes from all limits or from none', detail);
      }
      if (!isDeepStrictEqual(shown(is), shown(taken))) {
        const detail = `${shown(is).join(' ') || 'nothing'} of ${limit.name}, not ${shown(taken).join(' ') || 'nothing'}`;
        throw new Violation('limits have the approvals of their windows', detail);
      }
    }
    // What a key had that was idle or lost stays until it expires.
    const left = this.#removed.find((name) => ids.has(name));
    if (left !== undefined) throw new Violation('nothing is left of a limit that is gone', left);
  }

  #takenOf({ limit, unknown, taken }: AccountedLimit): number {
    const { hits, approvals } = this.held();
    const ofHeld = limit.counts === 'hits' ? hits : approvals;
    const ofWindow = [...taken.values()].reduce((sum, each) => sum + each, 0);
    return unknown + ofWindow + (limit.keepsReleased ? 0 : ofHeld);
  }
}

/** How much of the limit an approval with `hits` hits takes. */
export function takes({ counts }: FurtherLimit, hits: number): number {
  return counts === 'hits' ? hits : 1;
}

/** The start of the window that holds `now`, of windows of which one begins at `start`. */
function startOfWindow(start: number, windowMillis: number, now: number): number {
  return start + Math.max(0, Math.floor((now - start) / windowMillis)) * windowMillis;
}

function newLimit(now: number, limit: FurtherLimit): AccountedLimit {
  return { limit, start: now, unknown: 0, taken: new Map() };
}

function shown(taken: ReadonlyMap<string, number>): string[] {
  return [...taken].map(([id, hits]) => `${id}=${hits}`).sort();
}
