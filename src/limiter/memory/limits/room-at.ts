import type { Holds } from '../holds.js';

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
