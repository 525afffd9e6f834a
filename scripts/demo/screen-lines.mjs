import { sceneOf } from './scene.mjs';
import { explanation, sentence } from './sentences.mjs';

export const SCREEN_COLUMNS = 80;
export const SCREEN_ROWS = 24;

const LABEL_COLUMNS = 12;
const CELL_COLUMNS = 2;
const SCALE_STEP = 5;
const BAR_COLUMNS = 15;
/** The cell of a client shows its state. These events also get a line. */
const LOGGED = new Set(['filled', 'killed', 'returned', 'notApproved']);
const LOG_LINES = 4;
const SUMMARY_LINES = 2;

const CELLS = {
  absent: { symbol: '·', style: 'dim', meaning: 'has not come yet' },
  waits: { symbol: '●', style: 'yellow', meaning: 'waits' },
  approved: { symbol: '✓', style: 'green', meaning: 'approved' },
  lost: { symbol: '×', style: 'red', meaning: 'without a connection' },
  notApproved: { symbol: '!', style: 'red', meaning: 'not approved' },
};
const NAMES_OF_COUNTS = { waits: 'wait', approved: 'approved', lost: 'without a connection' };
const REPLICA_STYLES = { starts: 'dim', serves: 'green', killed: 'red' };

/**
 * The events so far as a picture that fits 80 x 24.
 * @param millis since the first window began
 * @param paint gives a text a style
 */
export function screenLines(events, millis, paint = (_style, text) => text) {
  const scene = sceneOf(events);
  const [title, rule] = explanation(events[0]);
  const logged = events.filter(({ event }) => LOGGED.has(event)).slice(-LOG_LINES);
  const summary = wrapped(scene.summary ?? '');
  return [
    paint('bold', title),
    rule,
    '',
    label('') + paint('dim', 'in the order in which they came'),
    label('client') + paint('dim', scale(scene.clients)),
    ...scene.replicas.map((replica) => replicaLine(scene, replica, paint)),
    label('window') + cells(scene.clients, ({ window }) => paint('cyan', cell(window ?? ''))),
    '',
    label('') + legend(paint),
    '',
    windowLine(scene, millis, paint),
    countsLine(scene),
    '',
    ...atLeast(LOG_LINES, logged.map(sentence)),
    '',
    ...atLeast(SUMMARY_LINES, summary).map((line) => paint('bold', line)),
  ];
}

function label(text) {
  return text.padEnd(LABEL_COLUMNS);
}

function cell(text) {
  return String(text).padEnd(CELL_COLUMNS);
}

function cells(clients, draw) {
  return clients.map(draw).join('');
}

/** The numbers of the clients, as far as there is room. */
function scale(clients) {
  const steps = clients.filter(({ number }) => number === 1 || number % SCALE_STEP === 0);
  return steps.reduce((line, { number }) => line.padEnd((number - 1) * CELL_COLUMNS) + number, '');
}

function replicaLine({ clients }, { name, state }, paint) {
  const line = cells(clients, (client) => {
    if (client.replica !== name) return cell('');
    const { symbol, style } = CELLS[client.state];
    return paint(style, cell(symbol));
  });
  return `${label(`replica ${name}`)}${line} ${paint(REPLICA_STYLES[state], state)}`;
}

function legend(paint) {
  return ['waits', 'approved', 'lost']
    .map((state) => `${paint(CELLS[state].style, CELLS[state].symbol)} ${CELLS[state].meaning}`)
    .join('   ');
}

function windowLine({ windows, windowMillis, maxRequests, summary }, millis, paint) {
  const window = [...windows.values()].at(-1);
  if (!window) return `${label('now')}the processes start ...`;
  const room = '■'.repeat(window.approved) + '□'.repeat(Math.max(0, maxRequests - window.approved));
  const count = `window ${window.number}  ${paint('green', room)} ${window.approved} of ${maxRequests} approved`;
  if (summary !== undefined) return `${label('last')}${count}`;
  const passed = Math.min(1, (millis - window.millis) / windowMillis);
  const bar = '━'.repeat(Math.max(0, Math.round(passed * BAR_COLUMNS))).padEnd(BAR_COLUMNS, '─');
  return `${label('now')}${count}   next window ${paint('cyan', bar)}`;
}

function countsLine({ clients }) {
  const count = (state) => clients.filter((client) => client.state === state).length;
  const counts = ['waits', 'approved', 'lost'].map(
    (state) => `${count(state)} ${NAMES_OF_COUNTS[state]}`,
  );
  return label('clients') + counts.join(', ');
}

function atLeast(count, lines) {
  return [...lines, ...Array(Math.max(0, count - lines.length)).fill('')];
}

function wrapped(text) {
  const lines = [''];
  for (const word of text.split(' ')) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (longer.length < SCREEN_COLUMNS) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}
