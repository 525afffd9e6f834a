// The holders of a key's approvals, with a button that ends a hold.

import { endHold } from './actions.js';
import { byId, firstOf, keepList, make, setText } from './dom.js';
import { count, moment, momentAndLength, roughly } from './text.js';

/** As many as the service lists. */
const MOST_LISTED = 100;

/**
 * @param detail the answer of `ui/data/key`
 * @param onEnded is called when a hold was ended
 */
export function showHolders(detail, onEnded) {
  const { key, holdings, may } = detail;
  byId('holders-none').hidden = holdings.length > 0;
  byId('holders-table').hidden = holdings.length === 0;
  byId('holders-rest').hidden = holdings.length < MOST_LISTED;
  keepList(
    byId('holders'),
    firstOf(holdings, byId('holders-more'), () => showHolders(detail, onEnded)),
    ({ handle }) => `${key} ${handle}`,
    (holding) => makeHolder(key, holding, onEnded),
    (row, holding) => fillHolder(row, holding, may.endHolds),
  );
}

function makeHolder(key, holding, onEnded) {
  const name = holding.holder ?? 'a caller without a name';
  const label = `End hold of ${name}`;
  const button = make(
    'button',
    { type: 'button', class: 'small', 'aria-label': label },
    'End hold',
  );
  button.addEventListener('click', () => endHold(button, key, holding, onEnded));
  return make(
    'tr',
    {},
    make('th', { scope: 'row' }, name),
    make('td', { 'data-label': 'since' }),
    make('td', { 'data-label': 'until' }),
    make('td', { class: 'number', 'data-label': 'hits' }),
    make('td', {}, button),
  );
}

function fillHolder({ children: [, since, until, hits, end] }, holding, mayEnd) {
  const { heldMillis, lapseMillis } = holding;
  setText(since, heldMillis === undefined ? 'not known' : momentAndLength(heldMillis));
  setText(until, `${moment(-lapseMillis)} (in ${roughly(lapseMillis)})`);
  setText(hits, count(holding.hits));
  end.firstElementChild.disabled = !mayEnd;
}
