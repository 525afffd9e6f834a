// What all pictures of the docs share: their colours, their font, and an SVG with a frame.

export const FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif";

/** The colours on a light and on a dark background. */
const LIGHT = {
  paper: '#ffffff',
  border: '#d0d7de',
  ink: '#1f2328',
  faint: '#59636e',
  band: '#f1f4f7',
  kill: '#cf222e',
  replicas: { A: '#0969da', B: '#bc6c00', C: '#0f8a6d' },
};
const DARK = {
  paper: '#0d1117',
  border: '#3d444d',
  ink: '#f0f6fc',
  faint: '#9198a1',
  band: '#171d26',
  kill: '#ff7b72',
  replicas: { A: '#58a6ff', B: '#e3a03f', C: '#3fc9a5' },
};

/**
 * Returns an SVG with a frame around what is drawn.
 * @param attributes of the SVG element, as a text
 * @param about elements that describe the picture to screen readers
 * @param style makes the style sheet in given colours
 * @param radius of the frame's corners
 * @param drawn the elements in the frame
 */
export function framed({ attributes, about = [], style, width, height, radius, drawn }) {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" ${attributes}>`,
    ...about,
    '<style>',
    style(LIGHT),
    '@media (prefers-color-scheme: dark) {',
    style(DARK),
    '}',
    '</style>',
    `<rect class="paper" x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="${radius}"/>`,
    ...drawn,
    '</svg>',
    '',
  ].join('\n');
}
