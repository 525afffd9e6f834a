// The CPU of one decision as bars in SVG, for Sluice and its alternatives. No library, since it is only rectangles.
import { comparedOverManyKeys } from './answers.mjs';

const WIDTH = 820;
const LABEL_WIDTH = 310;
const VALUE_WIDTH = 60;
const BAR_HEIGHT = 22;
const BAR_STEP = 30;
const HEAD = 74;
const MARGIN = 20;

/** Fills of the parts of a bar, of Sluice and of the others. */
const FILLS = {
  sluice: { own: '#0b7285', redis: '#66d9e8' },
  others: { own: '#868e96', redis: '#ced4da' },
};

export function chart(results) {
  const programs = comparedOverManyKeys(results);
  const sums = programs.map(({ cpuMicros, redisCpuMicros }) => ({
    own: cpuMicros.median,
    redis: redisCpuMicros.median,
    most: cpuMicros.median + redisCpuMicros.median,
  }));
  const longest = Math.max(...sums.map(({ most }) => most));
  const toWidth = (micros) => ((WIDTH - LABEL_WIDTH - VALUE_WIDTH - 2 * MARGIN) * micros) / longest;
  const bars = programs.map((program, i) => bar(HEAD + i * BAR_STEP, program, sums[i], toWidth));
  const height = HEAD + programs.length * BAR_STEP + MARGIN;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="CPU of one decision in microseconds">
<style>
text { font: 13px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif; fill: #212529; }
.title { font-size: 15px; font-weight: 600; }
.note { font-size: 12px; fill: #495057; }
</style>
<rect width="100%" height="100%" fill="#ffffff"/>
${text(MARGIN, 34, 'CPU of one decision, µs: 5,000 keys, all approved', 'class="title"')}
${text(MARGIN, 56, 'Median of the rounds. Dark: the program. Light: Redis.', 'class="note"')}
${bars.join('\n')}
</svg>
`;
}

function bar(y, { program, title }, { own, redis, most }, toWidth) {
  const fills = FILLS[['sluice', 'embedded'].includes(program) ? 'sluice' : 'others'];
  const x = MARGIN + LABEL_WIDTH;
  const middle = y + BAR_HEIGHT / 2;
  const part = (from, micros, fill) =>
    `<rect x="${from.toFixed(1)}" y="${y}" width="${toWidth(micros).toFixed(1)}" height="${BAR_HEIGHT}" fill="${fill}"/>`;
  return [
    text(x - 8, middle + 4, title, 'text-anchor="end"'),
    part(x, own, fills.own),
    part(x + toWidth(own), redis, fills.redis),
    text(x + toWidth(most) + 8, middle + 4, most.toFixed(0), ''),
  ].join('\n');
}

const text = (x, y, content, attributes) =>
  `<text x="${x.toFixed(1)}" y="${y}" ${attributes}>${content}</text>`;
