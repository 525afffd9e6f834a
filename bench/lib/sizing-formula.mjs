// What a decision costs, by how checks share calls to Redis, for docs/sizing.md.

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

/**
 * Fits `micros = check + call x calls`, the CPU for each decision, to measured points, by least squares.
 * @param {{calls: number, micros: number}[]} points with at least two different `calls`
 */
export function fitCost(points) {
  const mean = (figure) => points.reduce((sum, point) => sum + point[figure], 0) / points.length;
  const [calls, micros] = [mean('calls'), mean('micros')];
  let [covariance, variance] = [0, 0];
  for (const point of points) {
    covariance += (point.calls - calls) * (point.micros - micros);
    variance += (point.calls - calls) ** 2;
  }
  const call = covariance / variance;
  return { check: micros - call * calls, call };
}

/** The CPU for each decision, by a fitted cost. */
export function costAt({ check, call }, calls) {
  return check + call * calls;
}
