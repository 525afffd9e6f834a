// The history of a key: its decisions, its waiters and their waiting times, in charts with one time axis.

import { byId, make, setText } from './dom.js';
import { count, duration, rate } from './text.js';

const { uPlot } = globalThis;

const HEIGHT = 112;
const AXIS_HEIGHT = 22;
const AXIS_WIDTH = 52;
const FONT = '11px system-ui, sans-serif';
/** A history that has just begun is no sliver. */
const SHORTEST_SPAN_SECONDS = 120;
const LONGEST_SPAN_SECONDS = 15 * 60;

const perSecond = (value) => `${rate(value)}/s`;

/** The charts from top to bottom, with their lines. */
const CHARTS = [
  {
    format: perSecond,
    lines: [
      { field: 'approved', title: 'approved', color: '--low' },
      { field: 'denied', title: 'denied', color: '--full' },
    ],
  },
  { format: count, lines: [{ field: 'waiting', title: 'waiting', color: '--high' }] },
  {
    format: duration,
    lines: [{ field: 'waitMillis', title: 'waiting time of approvals, mean', color: '--calm' }],
    areSinglePoints: true,
  },
];

let charts;
let shown = { seconds: [] };

/** Forgets the history of the key before. */
export function closeHistory() {
  byId('history').hidden = true;
}

/** @param history the history in the answer of `ui/data/key` */
export function showHistory(history) {
  const { endMillis, stepMillis, approved } = history;
  byId('history').hidden = false;
  const seconds = approved.map(
    (_, i) => (endMillis - (approved.length - 1 - i) * stepMillis) / 1000,
  );
  shown = {
    seconds,
    end: endMillis / 1000,
    approved: rates(approved, stepMillis),
    denied: rates(history.denied, stepMillis),
    waiting: history.waiting,
    waitMillis: history.waitMillis,
  };
  setText(byId('history-note'), noteText(seconds, stepMillis));
  charts ??= CHARTS.map((chart, i) => makeChart(chart, i === CHARTS.length - 1));
  for (const { plot, lines } of charts) {
    plot.setData([seconds, ...lines.map(({ field }) => shown[field])]);
  }
  showValues();
}

function rates(numbers, stepMillis) {
  return numbers.map((number) => (number === null ? null : (number * 1000) / stepMillis));
}

function noteText([first], stepMillis) {
  if (first === undefined) return 'Counting begins now; the first figures come in some seconds.';
  const since = new Date(first * 1000 - stepMillis).toLocaleTimeString();
  return `Counted since ${since}, in steps of ${duration(stepMillis)}.`;
}

/** The last minutes of the history, as seconds. */
function timeRange() {
  const { seconds, end } = shown;
  const span = Math.max(SHORTEST_SPAN_SECONDS, end - (seconds[0] ?? end));
  return [end - Math.min(span, LONGEST_SPAN_SECONDS), end];
}

function makeChart({ lines, format, areSinglePoints = false }, isLast) {
  const values = lines.map(() => make('span', { class: 'value' }));
  const legend = lines.map(({ title, color }, i) =>
    make('span', { class: 'key', 'data-color': color }, title, ' ', values[i]),
  );
  const canvas = make('div', { role: 'img' });
  byId('charts').append(make('p', { class: 'legend' }, ...legend), canvas);
  const axis = { stroke: () => colorOf('--muted'), font: FONT, ticks: { show: false } };
  const grid = { stroke: () => colorOf('--track'), width: 1 };
  const height = HEIGHT + (isLast ? AXIS_HEIGHT : 0);
  const plot = new uPlot(
    {
      width: byId('charts').clientWidth,
      height,
      padding: [6, 30, isLast ? 0 : 6, 0],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, sync: { key: 'history' } },
      scales: {
        x: { range: timeRange },
        y: { range: (_plot, _least, most) => [0, Math.max(1, most * 1.1)] },
      },
      axes: [
        {
          ...axis,
          grid,
          show: isLast,
          size: AXIS_HEIGHT,
          space: 80,
          values: (_plot, splits) => splits.map(timeOf),
        },
        {
          ...axis,
          grid,
          size: AXIS_WIDTH,
          space: 28,
          values: (_plot, splits) => splits.map(format),
        },
      ],
      series: [
        {},
        ...lines.map(({ color }) => ({
          stroke: () => colorOf(color),
          width: 1.5,
          points: areSinglePoints ? { show: true, size: 4 } : {},
        })),
      ],
      hooks: { setCursor: [() => showValues()] },
    },
    [[], ...lines.map(() => [])],
    canvas,
  );
  new ResizeObserver(() => {
    const width = canvas.clientWidth;
    if (width > 0 && width !== plot.width) plot.setSize({ width, height });
  }).observe(canvas);
  return { plot, lines, format, values, canvas };
}

function colorOf(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name);
}

function timeOf(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString();
}

/** Shows the values under the cursor, or the last ones. */
function showValues() {
  if (!charts) return;
  const last = shown.seconds.length - 1;
  for (const { plot, lines, format, values, canvas } of charts) {
    const texts = lines.map(({ field, title }, i) => {
      const value = shown[field][plot.cursor.idx ?? last];
      setText(values[i], value === null || value === undefined ? '–' : format(value));
      const highest = Math.max(0, ...shown[field].filter((one) => one !== null));
      return `${title}, at most ${format(highest)}`;
    });
    canvas.setAttribute('aria-label', `${texts.join('; ')}`);
  }
}
