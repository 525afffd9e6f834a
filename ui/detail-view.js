// One key: its window, its limits and their sources, its waiters and holders, and its names in Redis.

import { copyButton } from './copy.js';
import { byId, keepList, make, setBar, setText } from './dom.js';
import { forgetHolders, showHolders } from './holders-view.js';
import { limitFillOf, limitText, noteRow, SPARKS, usageText } from './keys-view.js';
import { showLists } from './lists-view.js';
import { drawSpark } from './spark.js';
import { ago, algorithmText, count, duration, moment, plural, rate, reason } from './text.js';
import { offerLists } from './try-view.js';

const WINDOW_STEP_MILLIS = 100;

let windowTimer;

/** Shows what does not depend on an answer. */
export function openDetail(key) {
  setText(byId('detail-title'), key);
  byId('detail-live').hidden = true;
  byId('detail-queue').hidden = true;
  byId('detail-holders').hidden = true;
  byId('detail-names').hidden = true;
  forgetHolders();
  for (const id of ['limits', 'matches']) keepList(byId(id), []);
  setText(byId('overrides'), '');
  setText(byId('detail-state'), 'loading …');
}

export function closeDetail() {
  clearInterval(windowTimer);
}

/** @param detail the answer of `ui/data/key` */
export function showDetail(detail) {
  setText(byId('detail-state'), stateText(detail));
  byId('detail-live').hidden = !detail.found;
  byId('detail-queue').hidden = !detail.found;
  byId('detail-holders').hidden = !detail.found;
  byId('detail-names').hidden = !detail.found || detail.names.length === 0;
  showLimits(detail);
  offerLists(detail.explained);
  clearInterval(windowTimer);
  if (!detail.found) return;
  noteRow(detail);
  moveWindow(detail);
  showGauges(detail);
  showLists(detail);
  showWaiting(detail);
  showHolders(detail);
  keepList(byId('names'), detail.names, ({ name }) => name, makeName);
}

function stateText({ found, recentDenials: run, isRecovering, pausedMillis }) {
  const parts = [
    !found && 'This key does not exist now. These limits would apply to it.',
    isRecovering && 'Recovery after a loss of Redis: no request is approved for a moment.',
    found && pausedMillis > 0 && `Paused: no request is approved for ${duration(pausedMillis)}.`,
    run &&
      `Denied since ${moment(run.sinceMillis)} (${duration(run.sinceMillis)}): ${reason(run)}. ` +
        `${plural(run.count, 'time', 'times')}, ${rate(run.perSecond)} per second` +
        `${run.caller ? `, last asked by ${run.caller}` : ''}, last ${ago(run.lastMillis)}.`,
    found && !run && 'No replica has denied it recently.',
  ];
  return parts.filter(Boolean).join(' ');
}

/** The bar moves on between answers. */
function moveWindow({ limits: [{ windowMillis, millisToWindowEnd, algorithm }] }) {
  const hasEnd = algorithm.name === 'fixed_window';
  byId('window').hidden = !hasEnd;
  const end = performance.now() + millisToWindowEnd;
  const step = () => {
    const left = end - performance.now();
    const inWindow = left > 0 ? left : windowMillis - (-left % windowMillis);
    byId('window').firstElementChild.style.width = `${100 - (inWindow / windowMillis) * 100}%`;
    const shown = !hasEnd || windowMillis < 10_000 ? '' : `; ends in ${duration(inWindow)}`;
    setText(byId('window-text'), `${duration(windowMillis)} long${shown}`);
  };
  step();
  windowTimer = setInterval(step, WINDOW_STEP_MILLIS);
}

function showGauges(detail) {
  const { key, waiting, denied, limits, maxRequestsInQueue } = detail;
  const [own, ...further] = limits;
  const gauges = [
    {
      title: 'Approved',
      text: usageText(detail),
      part: limitFillOf(own),
      spark: SPARKS.fill(key),
    },
    ...further.map((limit) => ({
      title: `Limit ${limit.name}`,
      text: furtherText(limit),
      part: limitFillOf(limit),
    })),
    {
      title: 'Queue',
      text: `${count(waiting)} of ${count(maxRequestsInQueue)}`,
      part: waiting / Math.max(1, maxRequestsInQueue),
      spark: SPARKS.waiting(key),
    },
    { title: 'Denied', text: count(denied), spark: SPARKS.denied(key) },
  ];
  keepList(byId('gauges'), gauges, ({ title }) => `${key} ${title}`, makeGauge, fillGauge);
}

function furtherText(limit) {
  const usage = limitText(limit);
  const hasEnd = limit.algorithm.name === 'fixed_window';
  return hasEnd ? `${usage}; window ends in ${duration(limit.millisToWindowEnd)}` : usage;
}

function makeGauge({ title, part, spark: hasSpark }) {
  const bar = make('dd', { class: 'bar', 'aria-hidden': 'true' }, make('div', {}));
  const shown = part === undefined ? [] : [bar];
  const spark = hasSpark ? [make('dd', {}, make('span', { class: 'spark' }))] : [];
  return make('div', {}, make('dt', {}, title), make('dd', {}), ...shown, ...spark);
}

function fillGauge(element, { text, part, spark }) {
  setText(element.children[1], text);
  if (part !== undefined) setBar(element.children[2], part);
  if (spark) drawSpark(element.lastElementChild.firstElementChild, spark);
}

/** By their sources: title, how a value is shown, and the value among the limits of a key. */
const OWN_LIMITS = [
  ['windowMillis', 'Length of a window', duration, ({ limits }) => limits[0].windowMillis],
  ['maxRequests', 'Approvals per window', count, ({ limits }) => limits[0].maximum],
  [
    'algorithm',
    'Algorithm',
    (text) => text,
    ({ limits }) => algorithmText(limits[0].algorithm) ?? FIXED,
  ],
  ['maxRequestsInQueue', 'Places in the queue', count, (key) => key.maxRequestsInQueue],
];
const FIXED = 'fixed window';

function showLimits(detail) {
  const { key, explained } = detail;
  const keyInForce = detail.found ? detail : explained;
  const own = OWN_LIMITS.flatMap(([field, title, format, valueIn]) => {
    const [inForce, declared] = [keyInForce, explained].map(valueIn);
    if (field === 'algorithm' && inForce === FIXED && declared === FIXED) return [];
    // The algorithm says what the windows of a calendar are, and these have several lengths.
    if (field === 'windowMillis' && haveCalendar(keyInForce, explained)) return [];
    const why = whyText(explained.sources[field], { field, inForce, declared, format });
    return [{ title, value: format(inForce), why }];
  });
  const rows = [...own, ...furtherRows(keyInForce.limits, explained)];
  keepList(byId('limits'), rows, ({ title }) => `${key} ${title}`, makeLimit, fillLimit);
  setText(byId('overrides'), overridesText(explained));
  keepList(byId('matches'), explained.rules, (rule) => key + rule.number, makeMatch, fillMatch);
}

function haveCalendar(...keys) {
  return keys.every(({ limits: [{ algorithm }] }) => algorithm.calendar);
}

/** Further limits that are in force, or that apply from the next check or window on. */
function furtherRows([, ...inForce], { limits: [, ...declared], sources }) {
  const names = new Set([...inForce, ...declared].map(({ name }) => name));
  const textOf = (limits, name) => {
    const limit = limits.find((one) => one.name === name);
    return limit ? ruleText(limit) : 'none';
  };
  return [...names].map((name) => ({
    title: `Limit ${name}`,
    value: textOf(inForce, name),
    why: whyText(sources.further, {
      field: 'further',
      inForce: textOf(inForce, name),
      declared: textOf(declared, name),
      format: (text) => text,
    }),
  }));
}

function ruleText({ maximum, counts, windowMillis, algorithm, lanes, keepsReleased }) {
  const parts = [
    `${count(maximum)} ${counts} per ${algorithm.calendar?.unit ?? duration(windowMillis)}`,
    algorithmText(algorithm),
    lanes && `only ${lanes.length === 1 ? 'lane' : 'lanes'} ${lanes.join(', ')}`,
    keepsReleased && 'releases return nothing',
  ];
  return parts.filter(Boolean).join('; ');
}

function makeLimit({ title }) {
  return make('tr', {}, make('th', { scope: 'row' }, title), make('td', {}), make('td', {}));
}

function fillLimit(element, { value, why }) {
  setText(element.children[1], value);
  setText(element.children[2], why);
}

/** A live key takes new rules at its next check or window. */
function whyText(source, { field, inForce, declared, format }) {
  const differs = inForce !== declared;
  // A request may have set the next window's length only.
  if (source.by === 'request' && field === 'windowMillis' && !differs) {
    return 'a request, from the next window on';
  }
  if (source.by === 'request') return `a request, instead of ${format(declared)}`;
  const by = source.by === 'settings' ? 'the settings' : ruleName(source);
  return differs ? `${by}, ${format(declared)} from the next check or window on` : by;
}

function ruleName({ number, name }) {
  return name === undefined ? `rule ${number}` : `rule ${number}, ${name}`;
}

function overridesText({ requestsCanSet, isShadow, digest, rules }) {
  const may = (parameter) =>
    requestsCanSet[parameter] === undefined
      ? `may not set ${parameter}`
      : `may set ${parameter} up to ${count(requestsCanSet[parameter])}`;
  const parts = [
    `Requests ${may('maxRequests')} and ${may('maxRequestsInQueue')}.`,
    requestsCanSet.windowMillis === undefined
      ? 'They may not set windowMillis.'
      : `They may set windowMillis up to ${duration(requestsCanSet.windowMillis)}.`,
    requestsCanSet.holdMillis === undefined
      ? 'They may not hold approvals.'
      : `They may hold approvals for up to ${duration(requestsCanSet.holdMillis)} without a renewal.`,
    isShadow && 'Shadow mode: checks are decided and counted, but never denied.',
    rules.length === 0 ? 'No rule matches this key.' : `Matching rules, digest ${digest}:`,
  ];
  return parts.filter(Boolean).join(' ');
}

function makeMatch() {
  return make('li', {}, make('strong', {}), ' ', make('code', {}), ' ', make('span', {}));
}

function fillMatch(element, rule) {
  const [name, pattern, effects] = element.children;
  setText(name, ruleName(rule));
  setText(pattern, rule.pattern);
  const valueText = (value) => (typeof value === 'object' ? JSON.stringify(value) : value);
  const says = Object.entries(rule.effects).map(
    ([field, value]) => `${field}: ${valueText(value)}`,
  );
  setText(effects, `${rule.isRegex ? '(expression) ' : ''}${says.join(', ')}`);
}

function showWaiting({ waiting, queue, replicas, replica }) {
  byId('waiting-none').hidden = replicas.length > 0;
  const nameOf = (name) => (name === replica ? `${name} (this one)` : name);
  keepList(
    byId('waiting-replicas'),
    replicas,
    (one) => one.replica,
    () => make('li', {}),
    (element, one) =>
      setText(
        element,
        `${nameOf(one.replica)}: ${plural(one.places, 'place', 'places')}${leaseText(one)}`,
      ),
  );
  keepList(
    byId('waiting'),
    queue.map((one, place) => ({ ...one, place })),
    ({ place }) => place,
    () => make('li', {}),
    (element, one) => setText(element, `${duration(one.waitedMillis)} on ${nameOf(one.replica)}`),
  );
  const rest = waiting - queue.length;
  setText(byId('waiting-more'), rest > 0 ? `and ${count(rest)} more` : '');
}

function leaseText({ leaseMillis }) {
  if (leaseMillis === undefined) return '';
  return leaseMillis > 0
    ? `, lease ends in ${duration(leaseMillis)}`
    : `, lease expired ${duration(-leaseMillis)} ago: these places no longer count`;
}

function makeName({ content, name }) {
  return make(
    'li',
    {},
    make('span', { class: 'muted' }, content),
    make('code', {}, name),
    copyButton(name, `Copy the name of: ${content}`),
  );
}
