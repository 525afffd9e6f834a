// Decisions a second as bars in SVG, for Sluice and its alternatives. No library, since it is only rectangles.
const WIDTH = 760;
const LABEL_WIDTH = 215;
const VALUE_WIDTH = 70;
const BAR_HEIGHT = 22;
const BAR_STEP = 28;
const PART_GAP = 10;
const GROUP_HEAD = 46;
const MARGIN = 20;

const [ON_REDIS, IN_MEMORY, LIMIT] = ['#868e96', '#adb5bd', '#dee2e6'];

/** The bars in their order: programs with limits in Redis, programs with limits in one process, and the bare server. */
const PARTS = [
  {
    sluice: ['Sluice on Redis', '#0b7285'],
    'limitador-redis': ['Limitador on Redis', ON_REDIS],
    'envoy-ratelimit': ['Envoy ratelimit on Redis', ON_REDIS],
    'rate-limiter-flexible': ['rate-limiter-flexible on Redis', ON_REDIS],
    'express-rate-limit': ['express-rate-limit on Redis', ON_REDIS],
  },
  {
    embedded: ['Sluice, embedded', '#3bc9db'],
    limitador: ['Limitador in memory', IN_MEMORY],
    gocc: ['GoCC in memory', IN_MEMORY],
  },
  { bare: ['bare node:http, no limiter', LIMIT] },
];

export function chart({ throughput }) {
  const groups = throughput.slice(0, 2);
  const drawn = ({ program }) => PARTS.some((bars) => program in bars);
  const most = Math.max(
    ...groups.flatMap(({ programs }) => programs.filter(drawn).map((one) => one.perSecond.max)),
  );
  const toWidth = (value) => ((WIDTH - LABEL_WIDTH - VALUE_WIDTH - 2 * MARGIN) * value) / most;
  let y = MARGIN;
  const parts = [];
  for (const { name, programs } of groups) {
    parts.push(text(MARGIN, y + 22, `Decisions per second: ${name}`, 'class="title"'));
    y += GROUP_HEAD;
    for (const bars of PARTS) {
      for (const [program, look] of Object.entries(bars)) {
        const measured = programs.find((entry) => entry.program === program);
        if (!measured) continue;
        parts.push(bar(y, look, measured.perSecond, toWidth));
        y += BAR_STEP;
      }
      y += PART_GAP;
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

function bar(y, [name, colour], { median, min, max }, toWidth) {
  const x = MARGIN + LABEL_WIDTH;
  const middle = y + BAR_HEIGHT / 2;
  const value = Math.round(median).toLocaleString('en-US');
  return [
    text(x - 8, middle + 4, name, 'text-anchor="end"'),
    `<rect x="${x}" y="${y}" width="${toWidth(median).toFixed(1)}" height="${BAR_HEIGHT}" rx="2" fill="${colour}"/>`,
    `<path d="M${(x + toWidth(min)).toFixed(1)} ${middle}H${(x + toWidth(max)).toFixed(1)}" stroke="#212529"/>`,
    text(x + toWidth(max) + 8, middle + 4, value, ''),
  ].join('\n');
}

const text = (x, y, content, attributes) =>
  `<text x="${x.toFixed(1)}" y="${y}" ${attributes}>${content}</text>`;
