// The replicas, their store, their rules, and what they decide.

import { byId, keepList, setText } from './dom.js';
import { note } from './history.js';
import { drawSpark } from './spark.js';
import { count, duration, plural, rate } from './text.js';

/** A decision counts half as much for a rate after this long, as a denial does for the rate of its key. */
const HALF_LIFE_MILLIS = 10_000;
const DECAY = Math.LN2 / HALF_LIFE_MILLIS;
const OUTCOMES = ['approved', 'denied', 'shadowed', 'withdrawn', 'failed'];

/** By replica, its last report, and its rates as levels that fade. */
let replicas = new Map();

/** @param data the answer of `ui/data` */
export function showHead(data) {
  showRates(data.replicas);
  showReplicas(data);
  setText(byId('store'), data.store);
  setText(byId('problems'), data.problems.join('; '));
  const { count: rules, digest, isStale } = data.rules;
  setText(
    byId('rules'),
    rules === 0 ? 'none, only settings' : `${plural(rules, 'rule', 'rules')}, ${digest}`,
  );
  setText(
    byId('rules-stale'),
    isStale ? 'the rules file is invalid; the last good rules are in force' : '',
  );
  const sets = new Set(data.replicas.map((one) => one.rules)).size;
  setText(byId('rules-differ'), sets > 1 ? `the replicas have ${sets} sets of rules` : '');
  setText(byId('survey'), surveyText(data));
}

/** The replicas with what each decides and how many wait there. */
function showReplicas({ replica: own, replicas: reports }) {
  setText(byId('replica-count'), plural(reports.length, 'replica', 'replicas'));
  keepList(
    byId('replicas'),
    reports.toSorted((a, b) => a.replica.localeCompare(b.replica)),
    ({ replica }) => replica,
    () => document.createElement('li'),
    (element, { replica, waiting }) => {
      const perSecond = replicas.get(replica)?.perSecond.total;
      const parts = [
        perSecond !== undefined && `${rate(perSecond)}/s`,
        `${count(waiting)} waiting`,
        replica === own && 'answers this page',
      ];
      setText(element, `${replica}: ${parts.filter(Boolean).join(', ')}`);
    },
  );
}

function showRates(reports) {
  replicas = new Map(reports.map((report) => [report.replica, ratesOf(report)]));
  const known = [...replicas.values()].flatMap(({ perSecond }) => (perSecond ? [perSecond] : []));
  if (known.length === 0) return;
  const sum = (field) => known.reduce((all, one) => all + one[field], 0);
  note('replicas', { total: sum('total') });
  setText(byId('rate'), rate(sum('total')));
  const waiting = reports.reduce((all, one) => all + one.waiting, 0);
  const parts = [
    `${rate(sum('approved'))} approved`,
    `${rate(sum('denied'))} denied`,
    sum('shadowed') > 0 && `${rate(sum('shadowed'))} shadowed`,
    sum('failed') > 0 && `${rate(sum('failed'))} failed (503)`,
    `${count(waiting)} waiting`,
  ];
  setText(byId('rate-parts'), parts.filter(Boolean).join(' · '));
  drawSpark(byId('rate-spark'), {
    name: 'replicas',
    field: 'total',
    title: (highest) => `Decisions in the last minutes, at most ${rate(highest)} per second`,
  });
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

const FAILURES = {
  forbidden: 'the Redis user may not list keys (+scan); enter a whole key to open it',
  unavailable: 'the store is unreachable; this is the last known state',
  fault: 'the keys could not be listed; see the log',
};

function surveyText({ survey, matching }) {
  const { keys, kept, isComplete, ageMillis, failure } = survey;
  const parts = [
    failure && FAILURES[failure],
    matching === keys
      ? plural(keys, 'key', 'keys')
      : `${count(matching)} of ${plural(keys, 'key', 'keys')}`,
    kept < keys && 'search and sorting cover only full, waiting and denying keys',
    isComplete
      ? ageMillis > 10_000 && `listed ${duration(ageMillis)} ago`
      : !failure && 'still listing',
  ];
  return parts.filter(Boolean).join(' · ');
}
