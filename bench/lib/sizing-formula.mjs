// The formula of docs/sizing.md: the CPU of a decision is what a check costs, what a call costs times the calls for
// each decision, and what the beginning of a window costs times the part of the checks that begin one.

/**
 * How many calls to Redis there are for each decision. The checks of a tick share a call for each primary that holds
 * one of their keys.
 * @param {number} checksPerTick
 * @param {number} primaries
 */
export function callsPerDecision(checksPerTick, primaries) {
  const primariesAsked = primaries * (1 - (1 - 1 / primaries) ** checksPerTick);
  return Math.min(1, primariesAsked / checksPerTick);
}

/**
 * @param {{calls: number, begun: number, micros: number}[]} points three measurements: two without beginnings of
 *   windows, and with different calls for each decision; and one with beginnings
 * @returns {{check: number, call: number, window: number}} in µs of CPU
 */
export function solve([few, many, windows]) {
  const call = (many.micros - few.micros) / (many.calls - few.calls);
  const check = few.micros - call * few.calls;
  const window = (windows.micros - check - call * windows.calls) / windows.begun;
  return { check, call, window };
}
