// The last minutes of approvals as a small picture.
import { rate } from './text.js';

const SPACE = 'http://www.w3.org/2000/svg';
const WIDTH = 100;
const HEIGHT = 16;
/** As the service counts them: a value for each ten seconds of five minutes. */
const SPANS = 30;
const SPAN_SECONDS = 10;
/** So that a key with few approvals does not look like a busy one. */
const LEAST_PER_SECOND = 1;

/**
 * Fills an element with the picture, or empties it.
 * @param activity what was decided of a key or of all, if it was counted
 */
export function showSparkline(parent, activity) {
  if (!activity?.series) {
    parent.replaceChildren();
    return;
  }
  const { series, approved } = activity;
  // The last value moves with each poll, the others every ten seconds.
  const rates = [
    ...series.map((value) => (value === null ? null : value / SPAN_SECONDS)),
    approved,
  ];
  const most = Math.max(...rates);
  const top = Math.max(LEAST_PER_SECOND, most);
  const points = rates.map((value, i) => [
    (WIDTH * (SPANS + 1 + i - rates.length)) / SPANS,
    HEIGHT - 0.5 - ((HEIGHT - 2) * (value ?? 0)) / top,
  ]);
  const line = points.map((point) => point.map((number) => number.toFixed(1)).join(' ')).join('L');
  const svg = parent.firstElementChild ?? parent.appendChild(makePicture());
  const [area, stroke] = svg.children;
  area.setAttribute('d', `M${line}V${HEIGHT}H${points[0][0].toFixed(1)}Z`);
  stroke.setAttribute('d', `M${line}`);
  const text = `approvals of the last 5 min: now ${rate(approved)}/s, at most ${rate(most)}/s`;
  if (svg.getAttribute('aria-label') !== text) svg.setAttribute('aria-label', text);
}

function makePicture() {
  const svg = document.createElementNS(SPACE, 'svg');
  const attributes = { role: 'img', class: 'spark', viewBox: `0 0 ${WIDTH} ${HEIGHT}` };
  for (const [name, value] of Object.entries(attributes)) svg.setAttribute(name, value);
  svg.setAttribute('preserveAspectRatio', 'none');
  svg.append(document.createElementNS(SPACE, 'path'), document.createElementNS(SPACE, 'path'));
  return svg;
}
