export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The median, minimum and maximum of the measurements. */
export function summary(values) {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) };
}

/** The median of the ratios of each round, which do not change if a whole round is slower. */
export function ratio(values, others) {
  return median(ratios(values, others));
}

/** The ratio of each round. */
export function ratios(values, others) {
  return values.map((value, round) => value / others[round]);
}
