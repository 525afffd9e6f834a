// The lists of a key's queue that have waiters: lanes, or the longest groups.

import { byId, keepList, make, setBar, setText } from './dom.js';
import { count, duration } from './text.js';

/** @param detail the answer of `ui/data/key` */
export function showLists({ lists = [], listCount = 0, maxRequestsInQueue }) {
  byId('lists').hidden = lists.length === 0;
  keepList(
    byId('list-rows'),
    lists,
    ({ kind, name }) => `${kind} ${name}`,
    makeRow,
    (row, list) => fillRow(row, list, maxRequestsInQueue),
  );
  const rest = listCount - lists.length;
  setText(byId('lists-more'), rest > 0 ? `and ${count(rest)} more` : '');
}

function makeRow(list) {
  const bar = make('div', { class: 'bar', 'aria-hidden': 'true' }, make('div', {}));
  return make(
    'tr',
    {},
    make('th', { scope: 'row' }, ...titleOf(list)),
    make('td', {}, make('span', { class: 'value' }), bar),
    make('td', { class: 'value' }),
  );
}

function titleOf({ kind, name }) {
  if (kind === 'fifo') return ['no lane or group'];
  return name === '' ? [`no ${kind}`] : [`${kind} `, make('code', {}, name)];
}

function fillRow({ children: [, waiting, oldest] }, list, places) {
  setText(waiting.children[0], count(list.waiting));
  setBar(waiting.children[1], list.waiting / Math.max(1, places));
  setText(oldest, duration(list.oldestMillis));
}
