// One key: its state, its history, its limits, its holders and waiters, and its names in Redis.

import { showActions } from './actions.js';
import { closeHistory, showHistory } from './chart-view.js';
import { copyButton } from './copy.js';
import { byId, keepList, make, setText } from './dom.js';
import { showHolders } from './holders-view.js';
import { showLimits } from './limits-view.js';
import { showChip } from './states.js';
import { ago, count, duration, moment, plural, rate, reason, sinceText } from './text.js';
import { offerLists } from './try-view.js';
import { showWaiting } from './waiting-view.js';

const PARTS_OF_FOUND = ['detail-chip', 'detail-holders', 'detail-queue', 'detail-names'];

/** Shows what does not depend on an answer. */
export function openDetail(key) {
  setText(byId('detail-title'), key);
  for (const id of PARTS_OF_FOUND) byId(id).hidden = true;
  for (const id of ['limits', 'matches', 'holders', 'waiting']) keepList(byId(id), []);
  for (const id of ['overrides', 'action-problem']) setText(byId(id), '');
  closeHistory();
  setText(byId('detail-state'), 'loading …');
}

/**
 * @param detail the answer of `ui/data/key`
 * @param onChange is called when the page has changed something about the key
 */
export function showDetail(detail, onChange) {
  setText(byId('detail-state'), stateText(detail));
  for (const id of PARTS_OF_FOUND) byId(id).hidden = !detail.found;
  showActions(detail);
  showHistory(detail.history);
  showLimits(detail);
  offerLists(detail.explained);
  if (!detail.found) return;
  showChip(byId('detail-chip'), detail);
  showWaiting(detail);
  showHolders(detail, onChange);
  byId('detail-names').hidden = detail.names.length === 0;
  keepList(byId('names'), detail.names, ({ name }) => name, makeName);
}

function stateText(detail) {
  const { found, isCurrent, recentDenials: run, isRecovering, pausedMillis } = detail;
  const parts = [
    !found && 'This key does not exist now. These limits would apply to it.',
    isCurrent === false &&
      'The store is unreachable: these figures are only those of the replica that answers.',
    isRecovering && 'Recovery after a loss of Redis: no request is approved for a moment.',
    found &&
      pausedMillis > 0 &&
      `Paused: no request is approved until ${moment(-pausedMillis)} (in ${duration(pausedMillis)}).`,
    found && detail.limits[0].isHeldOnly && `${count(detail.held)} at work.`,
    run &&
      `Denied ${sinceText(run.sinceMillis)}: ${reason(run)}. ` +
        `${plural(run.count, 'time', 'times')}, ${rate(run.perSecond)} per second` +
        `${run.caller ? `, last asked by ${run.caller}` : ''}, last ${ago(run.lastMillis)}.`,
    found && !run && 'No replica has denied it recently.',
  ];
  return parts.filter(Boolean).join(' ');
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
