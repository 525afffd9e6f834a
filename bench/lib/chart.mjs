// Decisions a second as bars, as SVG: drawn by hand, since it is a dozen rectangles.
const WIDTH = 760;
const LABEL_WIDTH = 190;
const VALUE_WIDTH = 130;
const BAR_HEIGHT = 22;
const BAR_STEP = 30;
const GROUP_HEAD = 46;
const MARGIN = 20;

const COLOURS = {
  sluice: '#0b7285',
  embedded: '#3bc9db',
  'rate-limiter-flexible': '#868e96',
  'express-rate-limit': '#adb5bd',
  bare: '#dee2e6',
};
const NAMES = {
  sluice: 'Sluice on Redis',
  embedded: 'Sluice, embedded',
  bare: 'bare node:http, no limiter',
};

export function chart({ throughput }) {
  const groups = throughput.slice(0, 2);
  const most = Math.max(
    ...groups.flatMap(({ programs }) => programs.map(({ perSecond }) => perSecond.max)),
  );
  const toWidth = (value) => ((WIDTH - LABEL_WIDTH - VALUE_WIDTH - 2 * MARGIN) * value) / most;
  let y = MARGIN;
  const parts = [];
  for (const { name, programs } of groups) {
    parts.push(text(MARGIN, y + 22, `Decisions per second: ${name}`, 'class="title"'));
    y += GROUP_HEAD;
    for (const { program, perSecond } of programs) {
      parts.push(bar(y, program, perSecond, toWidth));
      y += BAR_STEP;
    }
  }
  const height = y + MARGIN + 16;
  parts.push(
    text(
      MARGIN,
      y + 18,
      'Median of the rounds; the thin line spans the slowest to the fastest.',
      'class="note"',
    ),
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="Decisions per second">
<style>
text { font: 13px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif; fill: #212529; }
.title { font-size: 15px; font-weight: 600; }
.note { font-size: 12px; fill: #495057; }
</style>
<rect width="100%" height="100%" fill="#ffffff"/>
${parts.join('\n')}
</svg>
`;
}

function bar(y, program, { median, min, max }, toWidth) {
  const x = MARGIN + LABEL_WIDTH;
  const middle = y + BAR_HEIGHT / 2;
  const value = Math.round(median).toLocaleString('en-US');
  return [
    text(x - 8, middle + 4, NAMES[program] ?? program, 'text-anchor="end"'),
    `<rect x="${x}" y="${y}" width="${toWidth(median).toFixed(1)}" height="${BAR_HEIGHT}" rx="2" fill="${COLOURS[program]}"/>`,
    `<path d="M${(x + toWidth(min)).toFixed(1)} ${middle}H${(x + toWidth(max)).toFixed(1)}" stroke="#212529"/>`,
    text(x + toWidth(max) + 8, middle + 4, value, ''),
  ].join('\n');
}

const text = (x, y, content, attributes) =>
  `<text x="${x.toFixed(1)}" y="${y}" ${attributes}>${content}</text>`;
