// Polls the service while the page is visible, and shows its answers.

import { addressOf, keyInAddress } from './address.js';
import { watchPause } from './actions.js';
import { isConfirming, watchConfirm } from './confirm.js';
import { copyBy } from './copy.js';
import { openDetail, showDetail } from './detail-view.js';
import { byId, setText } from './dom.js';
import { showHead, showStore } from './head-view.js';
import { showKeys } from './keys-view.js';
import { hasToken, read, AnswerError, useToken } from './service.js';
import { watchStates } from './states.js';
import { duration, moment } from './text.js';
import { forgetTried, watchTrying } from './try-view.js';

/** A phone shows fewer keys, so that its page is not too long. */
const FIRST_LIMIT = globalThis.matchMedia('(max-width: 40rem)').matches ? 10 : 50;
const MOST = 200;
const DEFAULT_INTERVAL_MILLIS = 2000;
const TYPING_MILLIS = 250;

const wanted = { limit: FIRST_LIMIT, search: '', state: undefined, order: 'need' };
let shownKey;
let timer;
let typing;
let underWay;
let lastAnswer;

/** Polls now, and cancels the request in flight. */
function refresh() {
  clearTimeout(timer);
  underWay?.abort();
  underWay = undefined;
  if (document.visibilityState === 'hidden' || !byId('token-form').hidden) return;
  void look();
}

async function look() {
  const asked = new AbortController();
  underWay = asked;
  let interval = DEFAULT_INTERVAL_MILLIS;
  try {
    const key = shownKey;
    const [overview, detail] = await Promise.all([
      read('data', wanted, asked.signal),
      key !== undefined && readDetail(key, asked.signal),
    ]);
    if (underWay !== asked) return;
    lastAnswer = performance.now();
    interval = overview.body.intervalMillis;
    showPage(overview.body);
    if (detail && shownKey === key) showDetailAnswer(detail);
  } catch (error) {
    if (underWay !== asked) return;
    if (isAboutToken(error)) {
      askForToken(error);
      return;
    }
    showBanner(
      `No answer${lastAnswer ? ` since ${moment(performance.now() - lastAnswer)}` : ''}: ${error.message}. Retrying …`,
    );
  }
  timer = setTimeout(refresh, interval);
}

/** A problem with one key must not hide the rest of the page. */
async function readDetail(key, signal) {
  try {
    return (await read('data/key', { key }, signal)).body;
  } catch (error) {
    if (error instanceof AnswerError && error.status !== 401) return { problem: error.message };
    throw error;
  }
}

function showPage(data) {
  showBanner('');
  showParts(true);
  setText(byId('pulse'), `live, every ${duration(data.intervalMillis)}`);
  showHead(data);
  showKeys(data);
}

/** @param isShown false while there is no token */
function showParts(isShown) {
  for (const id of ['facts', 'page']) byId(id).hidden = !isShown;
}

function showDetailAnswer(detail) {
  if (detail.problem) showProblem(detail.problem);
  else showDetail(detail, refresh);
}

function showProblem(problem) {
  const isShown = !byId('history').hidden;
  setText(byId('detail-state'), isShown ? `${problem}. The figures are as last read.` : problem);
}

function showBanner(text) {
  const banner = byId('banner');
  banner.hidden = text === '';
  setText(banner, text);
  if (text === '') return;
  setText(byId('pulse'), 'not live');
  showStore();
}

function isAboutToken(error) {
  return error instanceof AnswerError && (error.status === 401 || error.status === 403);
}

function askForToken(error) {
  useToken(undefined);
  showBanner('');
  setText(byId('pulse'), 'needs a token');
  showParts(false);
  byId('forget-token').hidden = true;
  byId('token-form').hidden = false;
  setText(byId('token-problem'), error?.message ?? '');
  byId('token').focus();
}

function watchToken() {
  byId('token-form').addEventListener('submit', (event) => {
    event.preventDefault();
    const field = byId('token');
    useToken(field.value.trim());
    field.value = '';
    byId('token-form').hidden = true;
    byId('forget-token').hidden = !hasToken();
    refresh();
  });
  byId('forget-token').addEventListener('click', () => {
    clearTimeout(timer);
    underWay?.abort();
    underWay = undefined;
    askForToken();
  });
}

function watchList() {
  watchStates((state) => {
    wanted.state = state;
    refresh();
  });
  byId('order').addEventListener('change', ({ target }) => {
    wanted.order = target.value;
    refresh();
  });
  byId('search').addEventListener('input', ({ target }) => {
    clearTimeout(typing);
    typing = setTimeout(() => {
      wanted.search = target.value;
      refresh();
    }, TYPING_MILLIS);
  });
  byId('search-form').addEventListener('submit', (event) => {
    event.preventDefault();
    const key = byId('search').value;
    if (key !== '') location.hash = addressOf(key);
  });
  byId('more').addEventListener('click', () => {
    wanted.limit = Math.min(MOST, wanted.limit + FIRST_LIMIT);
    refresh();
  });
}

function watchAddress() {
  const follow = () => {
    const left = shownKey;
    shownKey = keyInAddress();
    forgetTried();
    const isOpen = shownKey !== undefined;
    byId('detail').hidden = !isOpen;
    document.body.classList.toggle('has-detail', isOpen);
    if (isOpen) {
      openDetail(shownKey);
      byId('detail-title').focus();
    } else if (left !== undefined) {
      const link = [...document.querySelectorAll('#overview a')].find(
        ({ textContent }) => textContent === left,
      );
      (link ?? byId('search')).focus();
    }
    refresh();
  };
  addEventListener('hashchange', follow);
  byId('copy-key').addEventListener('click', ({ target }) => copyBy(target, shownKey));
  byId('back').addEventListener('click', (event) => {
    event.preventDefault();
    location.hash = '';
  });
  document.addEventListener('keydown', ({ key }) => {
    if (key === 'Escape' && shownKey !== undefined && !isConfirming()) location.hash = '';
  });
  follow();
}

watchToken();
watchList();
watchConfirm();
watchPause(() => shownKey, refresh);
watchTrying(() => shownKey, refresh);
document.addEventListener('visibilitychange', refresh);
watchAddress();
