// The waiters of a key: its lists with waiters, which are lanes or the longest groups, what its fullest groups take of the limits
// that each has to itself, and its waiters by position.

import { byId, firstOf, keepList, make, setText } from './dom.js';
import { count, duration, plural } from './text.js';

/** @param detail the answer of `ui/data/key` */
export function showWaiting(detail) {
  showLists(detail);
  showWaiters(detail);
  showPlaces(detail);
}

function showLists({ lists = [], listCount = 0, groups = [] }) {
  const takenBy = new Map(groups.map(({ name, takes }) => [name, takes]));
  const isListed = new Set(lists.filter(({ kind }) => kind === 'group').map(({ name }) => name));
  const others = groups.filter(({ name }) => !isListed.has(name));
  const rows = [...lists, ...others.map(({ name }) => ({ kind: 'group', name, waiting: 0 }))];
  byId('lists').hidden = rows.length === 0;
  const isPlain = groups.length === 0 && lists.every(({ stoppedBy }) => stoppedBy === undefined);
  byId('lists').classList.toggle('is-plain', isPlain);
  keepList(
    byId('list-rows'),
    rows.map((list) => ({ ...list, takes: list.kind === 'group' ? takenBy.get(list.name) : [] })),
    ({ kind, name }) => `${kind} ${name}`,
    makeList,
    fillList,
  );
  showRest(byId('lists-rest'), listCount - lists.length, 'more that wait');
}

function makeList(list) {
  return make(
    'tr',
    {},
    make('th', { scope: 'row' }, ...titleOf(list)),
    make('td', { class: 'number', 'data-label': 'waiting' }),
    make('td', { class: 'number', 'data-label': 'longest wait' }),
    make('td', { 'data-label': 'used' }),
    make('td', { 'data-label': 'stopped by' }),
  );
}

function titleOf({ kind, name }) {
  if (kind === 'fifo') return ['no lane or group'];
  return name === '' ? [`no ${kind}`] : [`${kind} `, make('code', {}, name)];
}

function fillList({ children: [, waiting, oldest, used, stopped] }, list) {
  const { oldestMillis, takes = [], stoppedBy, stoppedMillis } = list;
  setText(waiting, count(list.waiting));
  setText(oldest, oldestMillis === undefined ? '' : duration(oldestMillis));
  const texts = takes.map(({ limit, used, most }) => `${limit} ${count(used)} of ${count(most)}`);
  setText(used, texts.map(inOneLine).join(', '));
  const end = stoppedMillis === undefined ? 'until a release' : `${duration(stoppedMillis)} left`;
  setText(stopped, stoppedBy === undefined ? '' : `${stoppedBy}, ${inOneLine(end)}`);
}

/** The text without a place where a line may end. */
function inOneLine(text) {
  return text.replaceAll(' ', '\u00a0');
}

function showWaiters(detail) {
  const { waiting, queue, replica: own } = detail;
  byId('waiting-none').hidden = waiting > 0;
  byId('waiting-table').hidden = queue.length === 0;
  const waiters = queue.map((waiter, i) => ({ ...waiter, position: i + 1 }));
  keepList(
    byId('waiting'),
    firstOf(waiters, byId('waiting-more'), () => showWaiters(detail)),
    ({ position }) => position,
    makeWaiter,
    (row, waiter) => fillWaiter(row, waiter, own),
  );
  showRest(byId('waiting-rest'), waiting - queue.length);
}

function makeWaiter({ position }) {
  return make(
    'tr',
    {},
    make('td', { class: 'number', 'data-label': 'position' }, count(position)),
    make('td', { class: 'number', 'data-label': 'waits for' }),
    make('td', { 'data-label': 'on' }),
  );
}

function fillWaiter({ children: [, waits, replica] }, waiter, own) {
  setText(waits, duration(waiter.waitedMillis));
  setText(replica, nameOf(waiter.replica, own));
}

function nameOf(replica, own) {
  return replica === own ? `${replica} (this one)` : replica;
}

/** The places that each replica has in the queue. */
function showPlaces({ replicas, replica: own }) {
  keepList(
    byId('waiting-replicas'),
    replicas,
    ({ replica }) => replica,
    () => make('li', {}),
    (line, { replica, places, leaseMillis }) =>
      setText(
        line,
        `${nameOf(replica, own)}: ${plural(places, 'place', 'places')}${leaseText(leaseMillis)}`,
      ),
  );
}

function leaseText(leaseMillis) {
  if (leaseMillis === undefined) return '';
  return leaseMillis > 0
    ? `, lease ends in ${duration(leaseMillis)}`
    : `, lease expired ${duration(-leaseMillis)} ago: these places no longer count`;
}

function showRest(element, rest, what = 'more') {
  setText(element, rest > 0 ? `and ${count(rest)} ${what}` : '');
}
