// Denied keys, and the list of all keys.

import { addressOf, keyInAddress } from './address.js';
import { byId, fromTemplate, keepList, setBar, setText } from './dom.js';
import { note } from './history.js';
import { drawSpark } from './spark.js';
import { ago, count, duration, moment, plural, rate, reason } from './text.js';

/** @param data the answer of `ui/data` */
export function showKeys({ keys, refusedNow, refusedKeys, matching }) {
  const rows = new Map([...keys, ...refusedNow].map((row) => [row.key, row]));
  for (const row of rows.values()) noteRow(row);
  showRefused(refusedNow, refusedKeys);
  keepList(byId('keys'), inHeldOrder(keys), keyOf, () => fromTemplate('key-row'), fillRow);
  byId('keys-none').hidden = keys.length > 0;
  byId('more').hidden = keys.length >= matching;
}

/** Records a key's values for the sparklines, once per answer. */
export function noteRow({ key, approved, waiting, limits, refused }) {
  note(key, {
    fill: fillOf(approved, limits),
    waiting,
    refused: refused?.perSecond ?? 0,
  });
}

export function fillOf(approved, { maxRequests }) {
  return maxRequests === 0 ? 1 : approved / maxRequests;
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
  refused: (key) => ({
    name: key,
    field: 'refused',
    title: (highest) => `Denials in the last minutes, at most ${rate(highest)} per second`,
  }),
};

const keyOf = ({ key }) => key;

/** Rows stay in place while one has the pointer or the focus of the keyboard. */
function inHeldOrder(rows) {
  const list = byId('keys');
  if (!list.matches(':hover, :focus-within') || !list.kept) return rows;
  const places = new Map([...list.kept.keys()].map((key, i) => [key, i]));
  const placeOf = ({ key }) => places.get(key) ?? places.size;
  return [...rows].sort((a, b) => placeOf(a) - placeOf(b));
}

function showRefused(rows, all) {
  const refused = rows.filter(({ refused: run }) => run);
  byId('refused-none').hidden = refused.length > 0;
  setText(byId('refused-count'), all === 0 ? '' : plural(all, 'key', 'keys'));
  document.title = all === 0 ? 'Sluice' : `${count(all)} denied – Sluice`;
  keepList(byId('refused'), refused, keyOf, () => fromTemplate('refused-row'), fillRefused);
}

function fillRefused(element, row) {
  const { key, refused } = row;
  const [link, why, since, often, spark] = element.children;
  linkTo(link, key);
  setText(
    why,
    refused.caller ? `${reason(refused)}; last asked by ${refused.caller}` : reason(refused),
  );
  setText(
    since,
    `since ${moment(refused.sinceMillis)} (${duration(refused.sinceMillis)}), ` +
      `${plural(refused.count, 'time', 'times')}, last ${ago(refused.lastMillis)}`,
  );
  setText(often, `${rate(refused.perSecond)}/s`);
  drawSpark(spark, SPARKS.refused(key));
}

function fillRow(element, row) {
  const { key, approved, waiting, limits, denied, refused } = row;
  const [head, fill, queue, refusals] = element.children;
  linkTo(head.firstElementChild, key);
  setBar(fill.children[0], fillOf(approved, limits));
  setText(fill.children[1], `${count(approved)} of ${count(limits.maxRequests)}`);
  drawSpark(fill.children[2], SPARKS.fill(key));
  setBar(queue.children[0], waiting / Math.max(1, limits.maxRequestsInQueue));
  setText(queue.children[1], `${count(waiting)} of ${count(limits.maxRequestsInQueue)}`);
  drawSpark(queue.children[2], SPARKS.waiting(key));
  setText(refusals.children[0], refusalText(denied, refused));
  drawSpark(refusals.children[1], SPARKS.refused(key));
  element.classList.toggle('is-refused', refused !== undefined || denied > 0);
}

function refusalText(denied, refused) {
  if (refused) return `${rate(refused.perSecond)}/s`;
  return denied === 0 ? 'none' : `${count(denied)} this window`;
}

function linkTo(link, key) {
  setText(link, key);
  link.href = addressOf(key);
  if (keyInAddress() === key) link.setAttribute('aria-current', 'true');
  else link.removeAttribute('aria-current');
}
