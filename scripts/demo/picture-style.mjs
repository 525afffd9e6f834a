import { FONT } from '../lib/picture-frame.mjs';

/** The style sheet in these colours. */
export function style({ paper, border, ink, faint, band, kill, replicas }) {
  return `text { font: 13px ${FONT}; fill: ${ink}; }
.title { font-size: 19px; font-weight: 600; }
.strong { font-weight: 600; }
.small { font-size: 12px; fill: ${faint}; }
.tiny { font-size: 10px; fill: ${faint}; }
.middle { text-anchor: middle; }
.end { text-anchor: end; }
.paper { fill: ${paper}; stroke: ${border}; }
.band { fill: ${band}; }
.bar { opacity: 0.38; }
.lane { stroke-width: 5; stroke-linecap: round; }
.cross { stroke: ${kill}; stroke-width: 2.5; stroke-linecap: round; }
.kill { stroke: ${kill}; stroke-width: 1.5; stroke-dasharray: 4 4; }
.kill-note { fill: ${kill}; font-weight: 600; }
${Object.entries(replicas)
  .map(
    ([name, colour]) =>
      `.fill-${name}, .text-${name} { fill: ${colour}; }\n.line-${name} { stroke: ${colour}; }`,
  )
  .join('\n')}`;
}
