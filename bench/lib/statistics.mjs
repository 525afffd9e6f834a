export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The median, and the least and the greatest of what was measured. */
export function summary(values) {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) };
}

/** The median of the ratios of each round: what slows a whole round down leaves them alone. */
export function ratio(values, others) {
  return median(ratios(values, others));
}

/** The ratio of each round. */
export function ratios(values, others) {
  return values.map((value, round) => value / others[round]);
}
