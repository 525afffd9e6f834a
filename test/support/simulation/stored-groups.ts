import type { StoredFields } from '../stored-counts.js';

/** What a key stores of a group: lua/limits/group-limits.lua. */
export interface StoredGroup {
  /** A group that was stored with another number than the key has counts no longer. */
  readonly number: number;
  /** Its limits, as the text of limits has them. */
  readonly limits: string;
  /** By the names of its limits. */
  readonly counts: Readonly<Record<string, StoredFields & { start: number; used: number }>>;
  /** 0 if it is not paused. */
  readonly pausedUntil: number;
  /** While it is stopped: its order key. */
  readonly tag: number | undefined;
  /** When it will be idle by itself; undefined if it is stopped or holds approvals. */
  readonly idleAt: number | undefined;
}

/** @param texts by the ids of groups */
export function readGroups(texts: Readonly<Record<string, string>>): Map<string, StoredGroup> {
  return new Map(
    Object.entries(texts).map(([id, text]) => {
      const stored = JSON.parse(text) as Partial<StoredGroup> & {
        readonly paused_until?: number;
        readonly idle_at?: number;
      };
      const { number = 0, limits = '', counts = {}, tag } = stored;
      const { paused_until: pausedUntil = 0, idle_at: idleAt } = stored;
      return [id, { number, limits, counts, pausedUntil, tag, idleAt }];
    }),
  );
}
