// The formula of docs/sizing.md. The CPU of a decision is the sum of
//   check: what each check costs
//   tick: what a tick of the replica with checks costs, shared by its checks
//   call: what a call to Redis costs, shared by its checks
//   window: what the beginning of a window costs the check that begins it

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

/** @param {{ticks: number, calls: number, begun: number}} load for each decision */
export function cost({ check, tick, call, window }, { ticks, calls, begun }) {
  return check + tick * ticks + call * calls + window * begun;
}

/**
 * Four measurements, `calls` and `begun` for each decision, `micros` of CPU. On one primary there is a call for each
 * tick.
 * @param {{busy: object, quiet: object, windows: object, spread: object}} points `busy`, `quiet`: on one primary, with
 *   many and with few checks in a tick, without beginnings of windows; `windows`: the same with beginnings; `spread`: on
 *   several primaries, without beginnings, and its `ticks` for each decision
 * @returns {{check: number, tick: number, call: number, window: number}} in µs of CPU
 */
export function solve({ busy, quiet, windows, spread }) {
  const tickAndCall = (quiet.micros - busy.micros) / (quiet.calls - busy.calls);
  const check = busy.micros - tickAndCall * busy.calls;
  const onOne = check + tickAndCall * spread.ticks;
  const call = (spread.micros - onOne) / (spread.calls - spread.ticks);
  const window = (windows.micros - check - tickAndCall * windows.calls) / windows.begun;
  return { check, tick: tickAndCall - call, call, window };
}
