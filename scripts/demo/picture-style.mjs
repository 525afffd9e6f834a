/** The colours on a light and on a dark background. */
export const LIGHT = {
  paper: '#ffffff',
  border: '#d0d7de',
  ink: '#1f2328',
  faint: '#59636e',
  band: '#f1f4f7',
  kill: '#cf222e',
  replicas: { A: '#0969da', B: '#bc6c00', C: '#0f8a6d' },
};
export const DARK = {
  paper: '#0d1117',
  border: '#3d444d',
  ink: '#f0f6fc',
  faint: '#9198a1',
  band: '#171d26',
  kill: '#ff7b72',
  replicas: { A: '#58a6ff', B: '#e3a03f', C: '#3fc9a5' },
};

/** The style sheet in these colours. */
export function style({ paper, border, ink, faint, band, kill, replicas }) {
  return `text { font: 13px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif; fill: ${ink}; }
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
