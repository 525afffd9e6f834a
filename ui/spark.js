// Sparklines: small charts of the last minutes of a value.

import { past } from './history.js';

const SVG = 'http://www.w3.org/2000/svg';
const WIDTH = 100;
const HEIGHT = 24;

/**
 * Draws a series into an element.
 * @param title what it shows, for screen readers
 * @param atLeast the value at the top of the picture, if none is higher
 */
export function drawSpark(element, { name, field, title, atLeast = 1 }) {
  const points = past(name, field);
  let picture = element.firstElementChild;
  if (!picture) {
    picture = create('svg', {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: 'none',
      role: 'img',
    });
    picture.append(create('path', { class: 'area' }), create('path', { class: 'edge' }));
    element.append(picture);
  }
  const highest = Math.max(...points.map(([, value]) => value), 0);
  const top = Math.max(atLeast, highest);
  const line = points
    .map(
      ([x, value]) =>
        `${coordinate(x * WIDTH)} ${coordinate(HEIGHT - 1 - (value / top) * (HEIGHT - 2))}`,
    )
    .join('L');
  const [area, edge] = picture.children;
  const [first] = points;
  edge.setAttribute('d', points.length > 1 ? `M${line}` : '');
  area.setAttribute(
    'd',
    points.length > 1 ? `M${coordinate(first[0] * WIDTH)} ${HEIGHT}L${line}V${HEIGHT}Z` : '',
  );
  picture.setAttribute('aria-label', title(highest));
}

function coordinate(number) {
  return number.toFixed(1);
}

function create(name, attributes) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}
