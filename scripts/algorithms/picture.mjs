// A picture of approvals over time: a dot for each, those of one half second above each other.
import { FONT, framed } from '../lib/picture-frame.mjs';

const WIDTH = 720;
const LEFT = 16;
const PLOT_WIDTH = WIDTH - 2 * LEFT;
const DOT = 5;
const COLUMN_MILLIS = 500;
const TICK_MILLIS = 10_000;

/**
 * @param approvals their times in milliseconds from the start on
 * @param maximum of approvals per window
 * @param millis the length of the run
 * @returns an SVG with colours for a light and a dark background
 */
export function picture({ approvals, maximum, windowMillis, millis }) {
  const columns = new Map();
  for (const at of approvals) {
    const column = Math.floor(at / COLUMN_MILLIS);
    columns.set(column, (columns.get(column) ?? 0) + 1);
  }
  const rows = Math.max(maximum, ...columns.values());
  const floor = 24 + rows * 2 * DOT;
  const x = (at) => round(LEFT + (at / millis) * PLOT_WIDTH);
  const dots = [...columns].flatMap(([column, count]) =>
    Array.from({ length: count }, (_, i) => {
      const centre = x((column + 0.5) * COLUMN_MILLIS);
      return `<circle class="dot" cx="${centre}" cy="${floor - DOT - i * 2 * DOT}" r="${DOT - 1}"/>`;
    }),
  );
  const ticks = Array.from({ length: Math.floor(millis / TICK_MILLIS) + 1 }, (_, i) => {
    const at = i * TICK_MILLIS;
    const anchor = at === 0 ? 'start' : at === millis ? 'end' : 'middle';
    return (
      `<line class="tick" x1="${x(at)}" x2="${x(at)}" y1="18" y2="${floor}"/>` +
      `<text x="${x(at)}" y="${floor + 16}" text-anchor="${anchor}">${at / 1000} s</text>`
    );
  });
  const title = `${approvals.length} approvals in ${millis / 1000} s: at most ${maximum} per ${windowMillis / 1000} s`;
  const height = floor + 26;
  return framed({
    attributes: `viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" role="img" aria-label="${title}"`,
    style,
    width: WIDTH,
    height,
    radius: 6,
    drawn: [`<text x="${LEFT}" y="14">${title}</text>`, ...ticks, ...dots],
  });
}

function style({ paper, border, faint, replicas }) {
  return `text { font: 11px ${FONT}; fill: ${faint}; }
.paper { fill: ${paper}; stroke: ${border}; }
.tick { stroke: ${border}; }
.dot { fill: ${replicas.A}; }`;
}

function round(number) {
  return Math.round(number * 10) / 10;
}
