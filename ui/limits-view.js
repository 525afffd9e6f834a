// The limits of a key: what counts now, how much they allow, and what set them.

import { byId, fromTemplate, keepList, make, setBar, setText } from './dom.js';
import { limitText } from './limit-text.js';
import { count, duration } from './text.js';

/** @param detail the answer of `ui/data/key` */
export function showLimits(detail) {
  const { key, found, explained } = detail;
  const inForce = found ? detail : explained;
  const rows = [
    ownRow(inForce, explained),
    ...furtherRows(inForce.limits, explained),
    queueRow(inForce, explained),
  ];
  keepList(
    byId('limits'),
    rows,
    ({ title }) => `${key} ${title}`,
    () => fromTemplate('limit-row'),
    fillRow,
  );
  setText(byId('overrides'), overridesText(explained));
  keepList(byId('matches'), explained.rules, (rule) => key + rule.number, makeMatch, fillMatch);
}

function fillRow({ children: [head, used, of, end, why] }, row) {
  setText(head, row.title);
  setText(used, row.used === undefined ? '' : count(row.used));
  of.firstElementChild.hidden = row.used === undefined;
  setBar(of.firstElementChild, row.fill);
  setText(of.lastElementChild, row.text);
  setText(end, row.millisToWindowEnd > 0 ? `in ${duration(row.millisToWindowEnd)}` : '');
  setText(why, row.why);
}

/** The columns of a limit. Others than those with a boundary have no window that ends. */
function columnsOf(limit) {
  const { used, fill, hasBoundary } = limit;
  const millisToWindowEnd = hasBoundary ? limit.millisToWindowEnd : 0;
  return { used, fill, text: limitText(limit), millisToWindowEnd };
}

/** Maximum, window and algorithm of the key's own limit may have different sources. */
function ownRow({ limits: [own] }, { limits: [declared], sources }) {
  const whys = [
    ['maximum', whyText(sources.maxRequests, 'maximum', own, declared, count)],
    ['window', whyText(sources.windowMillis, 'windowMillis', own, declared, duration)],
    !own.hasBoundary && ['algorithm', sourceText(sources.algorithm)],
  ].filter(Boolean);
  const isOne = whys.every(([, why]) => why === whys[0][1]);
  const why = isOne ? whys[0][1] : whys.map(([field, text]) => `${field}: ${text}`).join('; ');
  return { title: 'own limit', ...columnsOf(own), why };
}

/** Further limits that are in force, or that apply from the next check or window on. */
function furtherRows([, ...inForce], { limits: [, ...declared], sources }) {
  const names = new Set([...inForce, ...declared].map(({ name }) => name));
  return [...names].map((name) => {
    const [now, next] = [inForce, declared].map((limits) =>
      limits.find((one) => one.name === name),
    );
    const [text, nextText] = [now, next].map((limit) => (limit ? limitText(limit) : 'none'));
    const source = sourceText(sources.further);
    const why = text === nextText ? source : `${source}, ${nextText} ${FROM_NEXT}`;
    return { title: name, ...(now ? columnsOf(now) : { fill: 0, text }), why };
  });
}

function queueRow(inForce, explained) {
  const { waiting, maxRequestsInQueue: places } = inForce;
  const why = whyText(
    explained.sources.maxRequestsInQueue,
    'maxRequestsInQueue',
    inForce,
    explained,
    count,
  );
  const fill = (waiting ?? 0) / Math.max(1, places);
  return { title: 'queue', used: waiting, fill, text: `${count(places)} places`, why };
}

/** A live key takes new rules at its next check or window. */
const FROM_NEXT = 'from the next check or window on';

function whyText(source, field, { [field]: inForce }, { [field]: declared }, format) {
  const isSame = inForce === declared;
  if (source.by !== 'request') {
    return isSame ? sourceText(source) : `${sourceText(source)}, ${format(declared)} ${FROM_NEXT}`;
  }
  // A request may have set only the length of the next window.
  if (field === 'windowMillis' && isSame) return 'a request, from the next window on';
  return `a request, instead of ${format(declared)}`;
}

function sourceText(source) {
  return source.by === 'rule' ? ruleName(source) : 'the settings';
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
