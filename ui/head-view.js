// The replicas, their store, their rules, and what they decide.

import { byId, keepList, setText } from './dom.js';
import { ago, count, moment, plural, rate } from './text.js';

/** A decision counts half as much for a rate after this long, as a denial does for the rate of its key. */
const HALF_LIFE_MILLIS = 10_000;
const DECAY = Math.LN2 / HALF_LIFE_MILLIS;
/** A replica that lives reports more often. */
const OLD_REPORT_MILLIS = 10_000;
const OUTCOMES = ['approved', 'denied', 'shadowed', 'withdrawn', 'failed'];

/** By replica, its last report, and its rates as levels that fade. */
let replicas = new Map();

/** @param data the answer of `ui/data` */
export function showHead(data) {
  showRates(data);
  showReplicas(data);
  setText(byId('store'), data.store);
  setText(byId('problems'), data.problems.join('; '));
  showRules(data);
  showOutage(data);
}

function showRules({ rules: { count: rules, digest, isStale }, replicas: reports }) {
  setText(
    byId('rules'),
    rules === 0 ? 'none, only settings' : `${plural(rules, 'rule', 'rules')}, ${digest}`,
  );
  const sets = new Set(reports.map((one) => one.rules)).size;
  const problems = [
    isStale && 'the rules file is invalid; the last good rules are in force',
    sets > 1 && `the replicas have ${sets} sets of rules`,
  ];
  setText(byId('rules-problem'), problems.filter(Boolean).join('; '));
}

/** Says what is not known while the store can't be read, and as of when the figures are. */
function showOutage({ isComplete, asOfMillis, nowMillis, replicas: { length: seen } }) {
  byId('outage').hidden = isComplete;
  const since =
    asOfMillis === null
      ? 'Nothing was known of the keys before.'
      : `Keys and replicas are as of ${moment(nowMillis - asOfMillis)} (${ago(nowMillis - asOfMillis)}).`;
  const text =
    `The store can’t be read. ${since} Not known: what the other replicas decide, and which of ` +
    `${plural(seen, 'replica', 'replicas')} last seen still live.`;
  setText(byId('outage'), isComplete ? '' : text);
}

/** The replicas with what each decides and how many wait there. */
function showReplicas({ replica: own, isComplete, replicas: reports }) {
  const replicasText = plural(reports.length, 'replica', 'replicas');
  setText(byId('replica-count'), isComplete ? replicasText : `${replicasText} last seen`);
  keepList(
    byId('replicas'),
    reports.toSorted((a, b) => a.replica.localeCompare(b.replica)),
    ({ replica }) => replica,
    () => document.createElement('li'),
    (element, { replica, waiting, reportedMillis }) => {
      const perSecond = replicas.get(replica)?.perSecond?.total;
      const parts = [
        perSecond !== undefined && `${rate(perSecond)}/s`,
        `${count(waiting)} waiting`,
        replica === own && 'answers this page',
        reportedMillis >= OLD_REPORT_MILLIS && `last reported ${ago(reportedMillis)}`,
      ];
      setText(element, `${replica}: ${parts.filter(Boolean).join(', ')}`);
    },
  );
}

function showRates({ replicas: reports, isComplete }) {
  replicas = new Map(reports.map((report) => [report.replica, ratesOf(report)]));
  const known = [...replicas.values()].flatMap(({ perSecond }) => (perSecond ? [perSecond] : []));
  if (known.length === 0) return;
  const sum = (field) => known.reduce((all, one) => all + one[field], 0);
  setText(byId('rate'), rate(sum('total')));
  const waiting = reports.reduce((all, one) => all + one.waiting, 0);
  const parts = [
    `${rate(sum('approved'))} approved`,
    `${rate(sum('denied'))} denied`,
    sum('shadowed') > 0 && `${rate(sum('shadowed'))} shadowed`,
    sum('failed') > 0 && `${rate(sum('failed'))} failed (503)`,
    `${count(waiting)} waiting`,
    !isComplete && 'others as last reported',
  ];
  setText(byId('rate-parts'), parts.filter(Boolean).join(' · '));
}

/** The rates of a replica, from two of its reports. They fade as those of the rows do. */
function ratesOf({ replica, uptimeMillis, decisions }) {
  const before = replicas.get(replica);
  if (!before) return { uptimeMillis, decisions, since: uptimeMillis, levels: {} };
  const passed = uptimeMillis - before.uptimeMillis;
  if (passed < 100) return before;
  const fade = Math.exp(-passed * DECAY);
  const share = 1 - Math.exp(-(uptimeMillis - before.since) * DECAY);
  const levels = {};
  const perSecond = { total: 0 };
  for (const outcome of OUTCOMES) {
    const more = decisions[outcome] - before.decisions[outcome];
    // They came at any time since the last report: on average half of it has faded.
    levels[outcome] = (before.levels[outcome] ?? 0) * fade + Math.max(0, more) * Math.sqrt(fade);
    perSecond[outcome] = (levels[outcome] * DECAY * 1000) / share;
    if (outcome !== 'failed') perSecond.total += perSecond[outcome];
  }
  return { uptimeMillis, decisions, since: before.since, levels, perSecond };
}
