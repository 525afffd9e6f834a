import { SCREEN_COLUMNS, SCREEN_ROWS, screenLines } from './screen-lines.mjs';

const FRAME_MILLIS = 100;
const STYLES = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 };
const HIDE_CURSOR = '\x1b[?25l';
const SHOW_CURSOR = '\x1b[?25h';
const CLEAR_TO_LINE_END = '\x1b[K';

/** Whether a stream is a terminal in which the picture has room. */
export function fitsScreen(stream) {
  return stream.isTTY === true && stream.columns >= SCREEN_COLUMNS && stream.rows >= SCREEN_ROWS;
}

/**
 * Shows the events in a terminal as one picture that changes with them and with time.
 * @returns to be called with each event, and all events so far
 */
export function showOnScreen(stream) {
  // https://no-color.org
  const paint = process.env.NO_COLOR ? (_style, text) => text : inColour;
  let events = [];
  let drawnLines = 0;
  let firstWindowBegan = Date.now();
  const draw = () => {
    const lines = screenLines(events, Date.now() - firstWindowBegan, paint);
    const toFirstLine = drawnLines > 0 ? `\x1b[${drawnLines}A` : '';
    stream.write(`${toFirstLine}${lines.map((line) => `${line}${CLEAR_TO_LINE_END}\n`).join('')}`);
    drawnLines = lines.length;
  };
  stream.write(HIDE_CURSOR);
  process.on('exit', () => stream.write(SHOW_CURSOR));
  const frames = setInterval(draw, FRAME_MILLIS);
  return (event, all) => {
    events = all;
    if (event.event === 'filled') firstWindowBegan = Date.now() - event.millis;
    if (event.event !== 'judged') return;
    clearInterval(frames);
    draw();
  };
}

function inColour(style, text) {
  return `\x1b[${STYLES[style]}m${text}\x1b[0m`;
}
