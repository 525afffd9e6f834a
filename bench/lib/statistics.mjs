export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The value that this many percent of the values do not exceed. */
export function percentile(values, percent) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)];
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

/** Pearson's coefficient: 1 if one value follows from the other, 0 if they have nothing to do with each other. */
export function correlation(values, others) {
  const mean = (all) => all.reduce((sum, value) => sum + value, 0) / all.length;
  const [mean1, mean2] = [mean(values), mean(others)];
  let [both, first, second] = [0, 0, 0];
  for (const [i, value] of values.entries()) {
    const [from1, from2] = [value - mean1, others[i] - mean2];
    both += from1 * from2;
    first += from1 ** 2;
    second += from2 ** 2;
  }
  return both / Math.sqrt(first * second);
}
