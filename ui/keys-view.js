// The table of keys.

import { addressOf } from './address.js';
import { byId, fromTemplate, keepList, setBar, setText } from './dom.js';
import { allowance } from './limit-text.js';
import { showSparkline } from './sparkline.js';
import { showChip, showCounts } from './states.js';
import { count, duration, plural, rate, reason, sinceText } from './text.js';

/** @param data the answer of `ui/data` */
export function showKeys({ keys, counts, matching, survey }) {
  showCounts(counts);
  document.title = counts.denied === 0 ? 'Sluice' : `${count(counts.denied)} denied – Sluice`;
  keepList(byId('keys'), inHeldOrder(keys), keyOf, () => fromTemplate('key-row'), fillRow);
  byId('keys-none').hidden = keys.length > 0;
  byId('more').hidden = keys.length >= matching;
  setText(byId('survey'), surveyText(survey, matching));
}

const keyOf = ({ key }) => key;

/** Rows keep their order while one has the pointer or the focus of the keyboard. */
function inHeldOrder(rows) {
  const list = byId('keys');
  if (!list.matches(':hover, :focus-within') || !list.kept) return rows;
  const indexes = new Map([...list.kept.keys()].map((key, i) => [key, i]));
  const indexOf = ({ key }) => indexes.get(key) ?? indexes.size;
  return [...rows].sort((a, b) => indexOf(a) - indexOf(b));
}

function fillRow(element, row) {
  const [state, head, approved, series, used, limit, waiting, denied, why] = element.children;
  const fullest = fullestOf(row);
  showChip(state.firstElementChild, row);
  const link = head.firstElementChild;
  setText(link, row.key);
  link.href = addressOf(row.key);
  setText(approved, row.rates ? `${rate(row.rates.approved)}/s` : '');
  showSparkline(series, row.rates);
  setText(used, count(fullest.used));
  setBar(limit.firstElementChild, fullest.fill);
  setText(limit.lastElementChild, `of ${allowance(fullest)}${nameText(fullest)}`);
  setText(waiting, waitingText(row));
  setText(denied, deniedText(row));
  setText(why, whyText(row));
  element.classList.toggle('is-old', !row.isCurrent);
}

function waitingText({ waiting, maxRequestsInQueue }) {
  return waiting === 0 ? '' : `${count(waiting)} of ${count(maxRequestsInQueue)}`;
}

/** Of a key that is none of the busiest, the rate of its run of denials. */
function deniedText({ denied, rates, recentDenials: run }) {
  const perSecond = rates?.denied || (run && (rates?.denied ?? run.perSecond));
  if (perSecond !== undefined) return `${rate(perSecond)}/s`;
  return denied === 0 ? '' : count(denied);
}

function whyText(row) {
  const { pausedMillis, recentDenials: run } = row;
  const parts = [
    pausedMillis > 0 && `paused for ${duration(pausedMillis)} more`,
    run && denialText(run, pausedMillis > 0),
    row.held > 0 && holdersText(row),
  ];
  return parts.filter(Boolean).join('; ');
}

function denialText(run, isPaused) {
  const why = isPaused && run.lastReason === 'paused' ? 'denied' : reason(run);
  const last = run.caller ? `, last by ${run.caller}` : '';
  return `${why} ${sinceText(run.sinceMillis)}${last}`;
}

/** How much is at work or held, the longest holder, and how many others there are. */
function holdersText({ held, holdings, limits: [own] }) {
  const atWork = own.isHeldOnly ? `${count(held)} at work` : '';
  if (!holdings) return atWork || `${count(held)} held`;
  const {
    shown: [{ holder, heldMillis }],
    count: all,
  } = holdings;
  const since = heldMillis === undefined ? '' : ` ${sinceText(heldMillis)}`;
  const others = all > 1 ? `, and ${plural(all - 1, 'other', 'others')}` : '';
  const heldBy = `held by ${holder ?? 'a caller without a name'}${since}${others}`;
  return atWork ? `${atWork}, ${heldBy}` : heldBy;
}

/** Only further limits have names. */
function nameText({ name }) {
  return name === undefined ? '' : `, limit ${name}`;
}

function fullestOf({ limits }) {
  return limits.reduce((a, b) => (b.fill > a.fill ? b : a));
}

const FAILURES = {
  forbidden: 'the Redis user may not list keys (+scan); enter a whole key to open it',
  unavailable: 'last known keys',
  fault: 'the keys could not be listed; see the log',
};

function surveyText({ keys, kept, isComplete, ageMillis, failure }, matching) {
  const parts = [
    failure && FAILURES[failure],
    matching === keys
      ? plural(keys, 'key', 'keys')
      : `${count(matching)} of ${plural(keys, 'key', 'keys')}`,
    kept < keys && 'search covers only full, waiting and denying keys',
    isComplete
      ? ageMillis > 10_000 && `listed ${duration(ageMillis)} ago`
      : !failure && 'still listing',
  ];
  return parts.filter(Boolean).join(' · ');
}
