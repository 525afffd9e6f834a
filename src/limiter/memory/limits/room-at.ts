import type { Holds } from '../holds.js';
import type { CountedLimit } from './counted-limit.js';

/** Waiters that are let go at an even pace are settled no more often than this, in milliseconds. */
export const LEAST_BETWEEN_SETTLES = 20;

/**
 * When the next lapse may make room in a limit; Infinity if none may. An approval that nobody has claimed is given back to
 * every limit, and another one only where it counts as a held one.
 */
export function nextLapse(holds: Holds | undefined, countsHeld: boolean): number {
  return holds && (countsHeld || holds.hasUnclaimed) ? holds.firstLapse : Infinity;
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
 * When what stops a waiter may have ended by itself: when all limits that it lacks room in may have it, or, if it lacks none,
 * when any has more or a hold may begin.
 * @param limits those that count the waiter
 * @param hits what it needs
 * @param holdAt when a hold may begin; Infinity if the waiter needs none, or one may begin now
 * @param pausedUntil -Infinity if the key is not paused
 */
export function roomFor(
  limits: readonly CountedLimit[],
  hits: number,
  holdAt: number,
  pausedUntil: number,
): number {
  const full = limits.filter((limit) => limit.isFull || !limit.fitsAlone(hits));
  const isFull = full.length > 0;
  const times = (isFull ? full : limits).map((limit) => limit.roomAt(hits));
  const time = isFull ? Math.max(...times) : Math.min(holdAt, ...times);
  return unlessPaused(time, isFull, pausedUntil);
}
