// Denied keys, and the list of all keys.

import { addressOf, keyInAddress } from './address.js';
import { byId, fromTemplate, keepList, setBar, setText } from './dom.js';
import { note } from './history.js';
import { drawSpark } from './spark.js';
import { ago, count, duration, moment, plural, rate, reason } from './text.js';

/** Idle keys are folded, unless somebody has unfolded them. */
let showsIdle = false;
let lastShown;

/**
 * @param data the answer of `ui/data`
 * @param isSearch whether the keys are what somebody has searched for
 */
export function showKeys({ keys, deniedNow, deniedKeys, matching }, isSearch) {
  const rows = new Map([...keys, ...deniedNow].map((row) => [row.key, row]));
  for (const row of rows.values()) noteRow(row);
  showDenied(deniedNow, deniedKeys);
  lastShown = { keys, isSearch };
  showList();
  byId('keys-none').hidden = keys.length > 0;
  byId('more').hidden = keys.length >= matching;
}

function showList() {
  const { keys, isSearch } = lastShown;
  const active = keys.filter((row) => !isIdle(row));
  const idle = isSearch ? 0 : keys.length - active.length;
  const listed = idle === 0 || showsIdle ? keys : active;
  keepList(byId('keys'), inHeldOrder(listed), keyOf, () => fromTemplate('key-row'), fillRow);
  const button = byId('idle');
  button.hidden = idle === 0;
  button.setAttribute('aria-expanded', String(showsIdle));
  setText(button, `${showsIdle ? 'Hide' : 'Show'} ${plural(idle, 'idle key', 'idle keys')}`);
}

export function watchIdle() {
  byId('idle').addEventListener('click', () => {
    showsIdle = !showsIdle;
    showList();
  });
}

/** A key with shorter windows counts nothing at the begin of each, and does not stay for long when it is idle. */
const SHORTEST_IDLE_MILLIS = 10_000;

/** Whether nothing counts in a key, and nobody waits or was denied. */
function isIdle({ denied, waiting, pausedMillis, limits, recentDenials }) {
  const counts = denied + waiting + pausedMillis > 0 || recentDenials !== undefined;
  const isLong = limits[0].windowMillis >= SHORTEST_IDLE_MILLIS;
  return isLong && !counts && limits.every(({ used }) => used === 0);
}

/** Records a key's values for the sparklines, once per answer. */
export function noteRow(row) {
  const { key, waiting, recentDenials } = row;
  note(key, {
    fill: fillOf(row),
    waiting,
    denied: recentDenials?.perSecond ?? 0,
  });
}

/** How full the fullest limit of a key is. */
function fillOf({ limits }) {
  return Math.max(...limits.map(limitFillOf));
}

/** How full a limit is. */
export function limitFillOf(limit) {
  const capacity = capacityOf(limit);
  return capacity === 0 ? 1 : limit.used / capacity;
}

/** What counts of the key's own limit, and how much of that is held. */
export function usageText({ held, limits: [own] }) {
  return held === 0 ? limitText(own) : `${limitText(own)}, ${count(held)} held`;
}

/** What counts of a limit. */
export function limitText(limit) {
  return `${count(limit.used)} of ${count(capacityOf(limit))}`;
}

/** How much may count of a limit at once. */
function capacityOf({ maximum, algorithm }) {
  return algorithm.name === 'token_bucket' ? Math.min(algorithm.burst, maximum) : maximum;
}

/** The usage of the key's own limit, and of a further limit that is fuller. */
function rowText(row) {
  const [fullest] = row.limits.toSorted((a, b) => limitFillOf(b) - limitFillOf(a));
  const further = fullest === row.limits[0] ? '' : `; ${fullest.name}: ${limitText(fullest)}`;
  return `${usageText(row)}${further}`;
}

/** A key's sparklines, by the value that they show. */
export const SPARKS = {
  fill: (key) => ({
    name: key,
    field: 'fill',
    title: (highest) => `Usage in the last minutes, at most ${Math.round(highest * 100)} percent`,
  }),
  waiting: (key) => ({
    name: key,
    field: 'waiting',
    title: (highest) => `Queue in the last minutes, at most ${count(highest)}`,
  }),
  denied: (key) => ({
    name: key,
    field: 'denied',
    title: (highest) => `Denials in the last minutes, at most ${rate(highest)} per second`,
  }),
};

const keyOf = ({ key }) => key;

/** Rows keep their order while one has the pointer or the focus of the keyboard. */
function inHeldOrder(rows) {
  const list = byId('keys');
  if (!list.matches(':hover, :focus-within') || !list.kept) return rows;
  const indexes = new Map([...list.kept.keys()].map((key, i) => [key, i]));
  const indexOf = ({ key }) => indexes.get(key) ?? indexes.size;
  return [...rows].sort((a, b) => indexOf(a) - indexOf(b));
}

function showDenied(rows, all) {
  const denied = rows.filter(({ recentDenials }) => recentDenials);
  byId('denied-none').hidden = denied.length > 0;
  setText(byId('denied-count'), all === 0 ? '' : plural(all, 'key', 'keys'));
  document.title = all === 0 ? 'Sluice' : `${count(all)} denied – Sluice`;
  keepList(byId('denied'), denied, keyOf, () => fromTemplate('denied-row'), fillDenied);
}

function fillDenied(element, row) {
  const { key, recentDenials: run } = row;
  const [link, why, since, often, spark] = element.children;
  linkTo(link, key);
  setText(why, run.caller ? `${reason(run)}; last asked by ${run.caller}` : reason(run));
  setText(
    since,
    `since ${moment(run.sinceMillis)} (${duration(run.sinceMillis)}), ` +
      `${plural(run.count, 'time', 'times')}, last ${ago(run.lastMillis)}`,
  );
  setText(often, `${rate(run.perSecond)}/s`);
  drawSpark(spark, SPARKS.denied(key));
}

function fillRow(element, row) {
  const { key, waiting, maxRequestsInQueue, denied, recentDenials: run } = row;
  const [head, ...cells] = element.children;
  const [fill, queue, denials] = cells.map((cell) => cell.firstElementChild);
  linkTo(head.firstElementChild, key);
  setBar(fill.children[0], fillOf(row));
  setText(fill.children[1], rowText(row));
  drawSpark(fill.children[2], SPARKS.fill(key));
  setBar(queue.children[0], waiting / Math.max(1, maxRequestsInQueue));
  setText(queue.children[1], `${count(waiting)} of ${count(maxRequestsInQueue)}`);
  drawSpark(queue.children[2], SPARKS.waiting(key));
  setText(denials.children[0], denialText(denied, run));
  drawSpark(denials.children[1], SPARKS.denied(key));
  element.classList.toggle('is-denied', run !== undefined || denied > 0);
}

function denialText(denied, run) {
  if (run) return `${rate(run.perSecond)}/s`;
  return denied === 0 ? 'none' : `${count(denied)} this window`;
}

function linkTo(link, key) {
  setText(link, key);
  link.href = addressOf(key);
  if (keyInAddress() === key) link.setAttribute('aria-current', 'true');
  else link.removeAttribute('aria-current');
}
