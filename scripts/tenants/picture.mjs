// A picture of what tenants have got over time: a line for each, in one panel for each order of their waiters.
import { FONT, framed } from '../lib/picture-frame.mjs';

const WIDTH = 720;
const MARGIN = 16;
const GAP = 40;
const PANEL_HEIGHT = 180;
const TOP = 40;
const TICK_SECONDS = 5;

/**
 * @param panels of each its title, and of each tenant when its requests were approved, in milliseconds from the start on;
 *   the first tenant is drawn apart
 * @param millis the length of the run
 * @param texts `label` for screen readers, and `one`, what the first tenant is called
 * @returns an SVG with colours for a light and a dark background
 */
export function picture(panels, millis, { label, one }) {
  const width = (WIDTH - 2 * MARGIN - GAP * (panels.length - 1)) / panels.length;
  const most = Math.max(...panels.flatMap(({ tenants }) => tenants.map(({ length }) => length)));
  const height = TOP + PANEL_HEIGHT + 30;
  const drawn = panels.map((panel, i) =>
    drawPanel(panel, { left: MARGIN + i * (width + GAP), width, most, millis, one }),
  );
  return framed({
    attributes: `viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" role="img" aria-label="${label}"`,
    style,
    width: WIDTH,
    height,
    radius: 6,
    drawn,
  });
}

function drawPanel({ title, tenants }, { left, width, most, millis, one }) {
  const floor = TOP + PANEL_HEIGHT;
  const x = (at) => round(left + (at / millis) * width);
  const y = (count) => round(floor - (count / most) * PANEL_HEIGHT);
  const ticks = [];
  for (let at = 0; at <= millis; at += TICK_SECONDS * 1000) {
    ticks.push(
      `<line class="tick" x1="${x(at)}" x2="${x(at)}" y1="${TOP}" y2="${floor}"/>` +
        `<text x="${x(at)}" y="${floor + 16}" text-anchor="middle">${at / 1000} s</text>`,
    );
  }
  const lines = tenants.map((approvals, i) => {
    const steps = approvals.map((at, before) => `H${x(at)}V${y(before + 1)}`);
    return `<path class="${i === 0 ? 'busy' : 'other'}" d="M${x(0)} ${y(0)}${steps.join('')}H${x(millis)}"/>`;
  });
  const [busy, ...others] = tenants.map(({ length }) => length);
  const [least, greatest] = [Math.min(...others), Math.max(...others)];
  const said = `${busy}, and each of the others ${least === greatest ? least : `${least} to ${greatest}`}`;
  return [
    `<text class="title" x="${left}" y="18">${title}</text>`,
    `<text x="${left}" y="33">${one} got ${said}</text>`,
    ...ticks,
    // The first one is drawn last, above the others.
    ...lines.reverse(),
  ].join('\n');
}

function style({ paper, border, faint, replicas }) {
  return `text { font: 11px ${FONT}; fill: ${faint}; }
.title { font-size: 13px; font-weight: 600; }
.paper { fill: ${paper}; stroke: ${border}; }
.tick { stroke: ${border}; }
path { fill: none; stroke-width: 1.5; }
.busy { stroke: ${replicas.B}; stroke-width: 2; }
.other { stroke: ${replicas.A}; }`;
}

function round(number) {
  return Math.round(number * 10) / 10;
}
