// What all replicas decide together, the replicas, their store and their rules.

import { byId, keepList, setText } from './dom.js';
import { showSparkline } from './sparkline.js';
import { ago, count, moment, plural, rate } from './text.js';

/** A replica that lives reports more often. */
const OLD_REPORT_MILLIS = 10_000;

/** @param data the answer of `ui/data` */
export function showHead(data) {
  showTotal(data);
  showReplicas(data);
  showStore(data.storeState);
  setText(byId('store'), data.store);
  setText(byId('problems'), data.problems.join('; '));
  showRules(data);
  showOutage(data);
}

/** @param state undefined if this poll was not answered */
export function showStore(state = 'not known') {
  setText(byId('store-state'), state);
  byId('store-state').dataset.state = state;
}

/** The rows add up to the same figures, as far as all keys are listed. */
function showTotal({ total, replicas, isComplete }) {
  const isKnown = total.approved !== undefined;
  const shown = (outcome) => (isKnown ? rate(total[outcome]) : '–');
  setText(byId('approved'), shown('approved'));
  setText(byId('denied'), shown('denied'));
  setText(byId('waiting-total'), count(total.waiting));
  byId('denied').parentElement.classList.toggle('bad', total.denied > 0);
  showSparkline(byId('approved-series'), isKnown ? total : undefined);
  const unknown = replicas.filter(({ perSecond }) => perSecond === undefined).length;
  const parts = [
    total.shadowed > 0 && `${rate(total.shadowed)}/s would be (shadow mode)`,
    total.failed > 0 && `${rate(total.failed)}/s failed (503)`,
    isComplete && isKnown && unknown > 0 && `without ${plural(unknown, 'replica', 'replicas')}`,
  ];
  setText(byId('other-outcomes'), parts.filter(Boolean).join(' · '));
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
    (element, { replica, perSecond, waiting, reportedMillis }) => {
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
