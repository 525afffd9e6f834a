import { framed } from '../lib/picture-frame.mjs';
import { style } from './picture-style.mjs';
import { sceneOf } from './scene.mjs';
import { judge } from './verdict.mjs';

const WIDTH = 960;
const MARGIN = 24;
const LEFT = 106;
const BANDS_TOP = 84;
const LANES_TOP = 138;
const LANE_STEP = 18;
const ROWS_TOP = 202;
const ROW_STEP = 12.5;
const BAR_HEIGHT = 6;
const FOOT_HEIGHT = 56;
const NOTE_STEP = 17;

/**
 * Draws a run as SVG: time from left to right, a lane for each replica, and a bar for each
 * client from its arrival to its approval, in the colour of the replica at which it waits.
 * @param events of the whole run
 * @throws Error if the run broke a promise, since the picture says that all were kept
 */
export function picture(events) {
  const { problems, summary } = judge(events);
  if (problems.length > 0) throw new Error(summary);
  const scene = sceneOf(events);
  const layout = layoutOf(scene);
  const parts = [heading, windowBands, replicaLanes, clientRows, notes, foot];
  const { height } = layout;
  return framed({
    attributes: `width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img" aria-labelledby="title description"`,
    about: [
      `<title id="title">${scene.clients.length} clients wait at three replicas, one of which is killed</title>`,
      `<desc id="description">${description(scene)}</desc>`,
    ],
    style,
    width: WIDTH,
    height,
    radius: 10,
    drawn: parts.flatMap((part) => part(scene, layout)),
  });
}

function layoutOf({ clients, windows, windowMillis }) {
  const endMillis = [...windows.values()].at(-1).millis + windowMillis;
  const rowsEnd = ROWS_TOP + clients.length * ROW_STEP + 4;
  return {
    /** The position of a time, of a client's row, and of a replica's lane. */
    x: (millis) => LEFT + ((WIDTH - LEFT - MARGIN) * millis) / endMillis,
    row: (number) => ROWS_TOP + (number - 0.5) * ROW_STEP,
    lane: (index) => LANES_TOP + (index + 0.5) * LANE_STEP,
    endMillis,
    rowsEnd,
    height: rowsEnd + FOOT_HEIGHT,
  };
}

function heading({ clients, maxRequests, windowMillis }) {
  const title = `${clients.length} clients wait at three replicas. One is killed. Nobody loses a place.`;
  const legend = `Each bar is a client that waits, in the colour of its replica, until it is approved (●).`;
  const rule = `${maxRequests} are approved in each window of ${windowMillis / 1000} s.`;
  return [text(MARGIN, 36, title, 'title'), text(MARGIN, 60, `${legend} ${rule}`)];
}

/** A band for each window, with its count. The first window was full before the clients came. */
function windowBands({ windows, windowMillis, maxRequests }, { x, endMillis, rowsEnd }) {
  return [...windows.values()].flatMap(({ number, approved, millis }) => {
    const left = x(millis);
    const width = x(Math.min(endMillis, millis + windowMillis)) - left;
    const middle = left + width / 2;
    const count = number === 1 ? 'already full' : `${approved} of ${maxRequests}`;
    const band = rectangle(left, BANDS_TOP, width, rowsEnd - BANDS_TOP, 'band');
    return [
      ...(number % 2 === 1 ? [band] : []),
      text(middle, BANDS_TOP + 20, `window ${number}`, 'small middle'),
      text(middle, BANDS_TOP + 39, count, 'strong middle'),
      text(left, rowsEnd + 18, `${(millis / 1000).toFixed(1)} s`, 'small middle'),
    ];
  });
}

function replicaLanes({ replicas }, { x, lane, endMillis }) {
  return replicas.flatMap(({ name, killedMillis }, index) => {
    const y = lane(index);
    const end = x(killedMillis ?? endMillis);
    return [
      text(LEFT - 10, y + 4, `replica ${name}`, `end strong text-${name}`),
      line(LEFT, y, end, y, `lane line-${name}`),
      ...(killedMillis === undefined ? [] : [cross(end, y, 6)]),
    ];
  });
}

function clientRows({ clients }, { x, row }) {
  return clients.flatMap(({ number, stays, state }) => {
    const y = row(number);
    const first = stays[0].replica;
    const { replica: last, to: decidedMillis } = stays.at(-1);
    const right = x(decidedMillis);
    return [
      text(LEFT - 24, y + 3.5, number, 'tiny end'),
      text(LEFT - 10, y + 3.5, first, `tiny end text-${first}`),
      ...stays.map(({ replica, from, to }) =>
        rectangle(x(from), y - BAR_HEIGHT / 2, x(to) - x(from), BAR_HEIGHT, `bar fill-${replica}`),
      ),
      state === 'approved'
        ? `<circle class="fill-${last}" cx="${fixed(right)}" cy="${fixed(y)}" r="4.5"/>`
        : cross(right, y, 4),
    ];
  });
}

/** The explanation, in the corner without clients. */
function notes({ clients, replicas }, { x, row, lane, rowsEnd }) {
  const index = replicas.findIndex(({ killedMillis }) => killedMillis !== undefined);
  const { name, killedMillis } = replicas[index];
  const killedX = x(killedMillis);
  const noteX = killedX + 14;
  const returned = clients.filter(({ hasReturned }) => hasReturned).length;
  const others = replicas.filter((replica) => replica.name !== name).map((replica) => replica.name);
  const lines = [
    [0, `The ${returned} clients that wait at ${name} lose their connections,`, 'kill-note'],
    [1, `and come back at ${others.join(' and ')}, each to its place.`, ''],
    [2.5, `● All ${clients.length} are approved in the order in which they`, 'strong'],
    [3.5, 'came, whichever replica they wait at. Nobody twice.', 'strong'],
  ];
  return [
    line(killedX, lane(index), killedX, rowsEnd, 'kill'),
    text(noteX, lane(index) + 4.5, 'killed with SIGKILL', 'kill-note'),
    ...lines.map(([at, ...content]) => text(noteX, row(2) + at * NOTE_STEP, ...content)),
  ];
}

function foot({ clients }, { row, height }) {
  const middle = (row(1) + row(clients.length)) / 2;
  return [
    `<text class="small middle" transform="translate(${MARGIN + 8} ${fixed(middle)}) rotate(90)">in the order in which they came →</text>`,
    text(WIDTH - MARGIN, height - 14, 'a recorded run of npm run demo', 'small end'),
  ];
}

function description({ clients, summary, replicas }) {
  const killed = replicas.find(({ killedMillis }) => killedMillis !== undefined);
  return `A recorded run of ${clients.length} clients. ${summary} ${(killed.killedMillis / 1000).toFixed(1)} seconds after the first window began.`;
}

function text(x, y, content, className = '') {
  return `<text x="${fixed(x)}" y="${fixed(y)}" class="${className}">${content}</text>`;
}

function rectangle(x, y, width, height, className) {
  const size = `width="${fixed(width)}" height="${fixed(height)}"`;
  return `<rect x="${fixed(x)}" y="${fixed(y)}" ${size} class="${className}"/>`;
}

function line(x1, y1, x2, y2, className) {
  return `<path d="M${fixed(x1)} ${fixed(y1)}L${fixed(x2)} ${fixed(y2)}" class="${className}"/>`;
}

function cross(x, y, size) {
  const [left, right, top, bottom] = [x - size, x + size, y - size, y + size].map(fixed);
  return `<path d="M${left} ${top}L${right} ${bottom}M${left} ${bottom}L${right} ${top}" class="cross"/>`;
}

function fixed(value) {
  return Number(value.toFixed(1));
}
