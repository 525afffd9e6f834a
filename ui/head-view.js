// The replica that answers, its store, its rules, and what it decides.

import { byId, setText } from './dom.js';
import { note } from './history.js';
import { drawSpark } from './spark.js';
import { count, duration, plural, rate } from './text.js';

/** The last totals of each replica that has answered: a load balancer may lead to several. */
const answered = new Map();

/** @param data the answer of `ui/data` */
export function showHead(data) {
  showRates(data);
  setText(byId('replica'), data.replica);
  setText(byId('replicas'), others(data));
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
  setText(byId('survey'), surveyText(data));
}

/** The other replicas that this page has seen. No replica has a list of them. */
function others({ replica, survey }) {
  const names = new Map([...answered.keys()].map((name) => [name, 'also answered here']));
  for (const { replica: name, places } of survey.replicas) {
    if (name !== undefined) names.set(name, `${plural(places, 'waits', 'wait')} there`);
  }
  names.delete(replica);
  const known = [...names].map(([name, how]) => `${name} (${how})`);
  return known.length === 0 ? 'no other replica seen' : `also seen: ${known.join(', ')}`;
}

function showRates({ replica, decisions, waiting }) {
  const at = performance.now();
  const before = answered.get(replica);
  answered.set(replica, { at, decisions });
  if (!before || at - before.at < 100) return;
  const perSecond = (field) =>
    Math.max(0, ((decisions[field] - before.decisions[field]) * 1000) / (at - before.at));
  const [approved, denied, shadowed, withdrawn, failed] = [
    ...['approved', 'denied', 'shadowed', 'withdrawn', 'failed'].map(perSecond),
  ];
  const total = approved + denied + shadowed + withdrawn;
  note('replica', { total });
  setText(byId('rate'), rate(total));
  const parts = [
    `${rate(approved)} approved`,
    `${rate(denied)} denied`,
    shadowed > 0 && `${rate(shadowed)} shadowed`,
    failed > 0 && `${rate(failed)} failed (503)`,
    `${count(waiting)} waiting here`,
  ];
  setText(byId('rate-parts'), parts.filter(Boolean).join(' · '));
  drawSpark(byId('rate-spark'), {
    name: 'replica',
    field: 'total',
    title: (highest) => `Decisions in the last minutes, at most ${rate(highest)} per second`,
  });
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
