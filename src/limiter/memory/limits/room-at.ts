import type { CountedLimit } from './counted-limit.js';

/** Waiters that are let go at an even pace are settled no more often than this, in milliseconds. */
export const LEAST_BETWEEN_SETTLES = 20;

/** What decides when a limit has more room. Times are milliseconds of a clock. */
export interface LimitInWindow {
  readonly windowEnd: number;
  /** When the first hold lapses that counts in the limit; Infinity if there is none. */
  readonly firstLapse: number;
  /** What the held approvals take. */
  readonly held: number;
  readonly maximum: number;
}

/**
 * When a limit has more room: when its window ends or a hold lapses. While held approvals take all of the maximum, the
 * window's end makes no room.
 */
export function moreRoomAt({ windowEnd, firstLapse, held, maximum }: LimitInWindow): number {
  const isAllHeld = firstLapse < Infinity && held >= maximum;
  return isAllHeld ? firstLapse : Math.min(windowEnd, firstLapse);
}

/**
 * A time at which there is room, but not before the end of a pause. If there is room already, that end alone counts.
 * @param pausedUntil -Infinity if there is no pause
 */
export function unlessPaused(roomAt: number, isFull: boolean, pausedUntil: number): number {
  const isPaused = pausedUntil > -Infinity;
  return isPaused && !isFull ? pausedUntil : Math.max(roomAt, pausedUntil);
}

/** Until a time, in whole microseconds, as Redis says it. A time since 1970 has no exact fractions of milliseconds. */
export function millisUntil(time: number, now: number): number {
  return Math.round((time - now) * 1000) / 1000;
}

/**
 * When limits have room for a waiter: when all that it does not fit into have it, or, if it fits into all, when any of them
 * has more.
 * @param limits those that count the waiter
 * @param hits what it needs
 * @param pausedUntil -Infinity if the key is not paused
 */
export function roomFor(
  limits: readonly CountedLimit[],
  hits: number,
  pausedUntil: number,
): number {
  const full = limits.filter((limit) => limit.isFull || !limit.fits(hits));
  const isFull = full.length > 0;
  const times = (isFull ? full : limits).map((limit) => limit.roomAt(hits));
  const time = isFull ? Math.max(...times) : Math.min(...times);
  return unlessPaused(time, isFull, pausedUntil);
}
