// The values of the last minutes, since the service keeps no history.

/** How far back the sparklines go; less while the page is new. */
const SPAN_MILLIS = 5 * 60_000;
const SHORTEST_SPAN_MILLIS = 60_000;
/** Most series that are kept; the least recently seen are forgotten. */
const MOST_SERIES = 600;

const series = new Map();

/** Records the current values, by the names of what they measure. */
export function note(name, values) {
  const now = performance.now();
  const samples = series.get(name) ?? [];
  // The series that was recorded last is the last of the map.
  series.delete(name);
  series.set(name, samples);
  samples.push({ at: now, ...values });
  while (samples[0].at < now - SPAN_MILLIS) samples.shift();
  if (series.size > MOST_SERIES) series.delete(series.keys().next().value);
}

/** @returns pairs of a time, from 0 at the left of a picture to 1, now, and a value */
export function past(name, field) {
  const now = performance.now();
  // The page's own clock begins when it is opened.
  const span = Math.min(SPAN_MILLIS, Math.max(SHORTEST_SPAN_MILLIS, now));
  return (series.get(name) ?? []).map((sample) => [1 - (now - sample.at) / span, sample[field]]);
}
