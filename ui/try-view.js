// A check, a wait and a release by hand.

import { byId, keepList, make, setText } from './dom.js';
import { attempt, AnswerError } from './service.js';
import { duration } from './text.js';

/** Most results that are shown. */
const MOST_LINES = 20;
const STEP_MILLIS = 100;

/** @param keyNow the key that is shown */
export function watchTrying(keyNow, onTried) {
  byId('try').addEventListener('submit', async (event) => {
    event.preventDefault();
    const fields = Object.fromEntries(new FormData(event.target));
    await check(keyNow(), fields, event.submitter?.value === 'wait');
    onTried();
  });
}

export function forgetTried() {
  byId('tried').replaceChildren();
  offerLists({ lanes: [], hasGroups: false });
}

/** Offers the lanes of the key, or a field for a group. A check that names no lane is in the last one. */
export function offerLists({ lanes, hasGroups }) {
  offer(byId('try-lane'), lanes.length > 0);
  offer(byId('try-group'), hasGroups);
  const makeOption = (lane) => make('option', lane === lanes.at(-1) ? { selected: '' } : {}, lane);
  keepList(byId('try-lane'), lanes, (lane) => lane, makeOption);
}

/** The form leaves out what is disabled. */
function offer(field, isOffered) {
  field.disabled = !isOffered;
  field.parentElement.hidden = !isOffered;
}

async function check(key, fields, canWait) {
  const line = addLine();
  const leave = new AbortController();
  const begun = performance.now();
  const elapsed = () => duration(performance.now() - begun);
  const waiting = canWait && showWaiting(line, elapsed, leave);
  try {
    const ofWait = canWait ? { canWait: 'true' } : { maxWaitMillis: undefined };
    const query = { key, ...fields, ...ofWait };
    const { body, headers } = await attempt('try/check', query, leave.signal);
    setText(line.firstElementChild, `Approved after ${elapsed()}${leftText(headers)}`);
    line.append(releaseButton(key, body.request_id));
  } catch (error) {
    setText(line.firstElementChild, problemText(error, `Canceled after ${elapsed()}`));
  } finally {
    if (waiting) waiting();
  }
}

/** Shows that a check waits. Returns a function that ends this. */
function showWaiting(line, elapsed, leave) {
  const button = make('button', { type: 'button', class: 'small' }, 'Cancel');
  button.addEventListener('click', () => leave.abort());
  line.append(button);
  const clock = line.querySelector('.elapsed');
  const timer = setInterval(() => setText(clock, `waiting for ${elapsed()}`), STEP_MILLIS);
  return () => {
    clearInterval(timer);
    button.remove();
    setText(clock, '');
  };
}

function releaseButton(key, requestId) {
  const button = make('button', { type: 'button', class: 'small' }, 'Release');
  button.addEventListener('click', async () => {
    button.disabled = true;
    const line = addLine();
    try {
      await attempt('try/release', { key, request_id: requestId });
      setText(line.firstElementChild, 'Released');
      button.remove();
    } catch (error) {
      setText(line.firstElementChild, problemText(error, 'Not released'));
      button.disabled = false;
    }
  });
  return button;
}

/** From the headers of the answer, in the form that the service's settings choose. */
function leftText(headers) {
  const [, left] = /;r=(\d+)/.exec(headers.get('ratelimit') ?? '') ?? [];
  const shadow = headers.get('x-sluice-shadow');
  const parts = [
    left !== undefined && `${left} left in this window`,
    shadow && 'a shadow rule would have denied it',
    headers.get('x-sluice-outage-policy') && 'decided without the store',
  ];
  return parts
    .filter(Boolean)
    .map((part) => `; ${part}`)
    .join('');
}

function problemText(error, aborted) {
  if (error.name === 'AbortError') return aborted;
  if (!(error instanceof AnswerError)) return `No answer: ${error.message}`;
  const when = error.retryAfter ? `; retry after ${error.retryAfter} s` : '';
  return `${error.status}: ${error.message}${when}`;
}

/** The text that is read out stands apart from the clock that runs. */
function addLine() {
  const list = byId('tried');
  const time = make('time', { class: 'muted' }, new Date().toLocaleTimeString());
  const clock = make('span', { class: 'elapsed', 'aria-hidden': 'true' });
  const line = make('li', {}, make('span', {}, 'Sending …'), clock, time);
  list.prepend(line);
  while (list.children.length > MOST_LINES) list.lastElementChild.remove();
  return line;
}
