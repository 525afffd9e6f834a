import type { PlaceInQueue } from '../../limiter/limiter.js';

/** @returns undefined if the request does not wait */
export function decodePlace(reply: unknown): PlaceInQueue | undefined {
  const [position, micros] = reply as readonly number[];
  if (position === undefined || micros === undefined) return undefined;
  return { position, waitMillis: micros / 1000 };
}
