// How checks share calls to Redis, for docs/sizing.md.

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
 * How many checks share a tick, by the calls for each decision: the inverse of `callsPerDecision`.
 * @param {number} calls for each decision
 * @param {number} primaries several
 */
export function checksPerTick(calls, primaries) {
  let [few, many] = [1, 1000];
  while (many - few > 0.001) {
    const middle = (few + many) / 2;
    if (callsPerDecision(middle, primaries) > calls) few = middle;
    else many = middle;
  }
  return few;
}
