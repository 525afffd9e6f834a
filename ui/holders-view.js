// The holders of a key's approvals, and the end of a hold by hand.

import { byId, keepList, make, setText } from './dom.js';
import { attempt } from './service.js';
import { duration, moment, plural } from './text.js';

/** As many as the service lists. */
const MOST_LISTED = 100;
/** How long a button asks whether its hold is to be ended. */
const ASKING_MILLIS = 5000;

export function forgetHolders() {
  setText(byId('holders-problem'), '');
  keepList(byId('holders'), []);
}

/** @param detail the answer of `ui/data/key` */
export function showHolders({ key, holdings, mayEndHolds }) {
  byId('holders-none').hidden = holdings.length > 0;
  byId('holders-more').hidden = holdings.length < MOST_LISTED;
  keepList(
    byId('holders'),
    holdings,
    ({ handle }) => handle,
    (holding) => makeHolder(key, holding, mayEndHolds),
    fillHolder,
  );
}

function makeHolder(key, holding, mayEnd) {
  const line = make(
    'li',
    {},
    make('strong', {}, holding.holder ?? 'not named'),
    make('span', { class: 'muted' }),
  );
  if (mayEnd) line.append(endButton(key, holding));
  return line;
}

function fillHolder(element, { heldMillis, lapseMillis, hits }) {
  const parts = [
    heldMillis !== undefined && `since ${moment(heldMillis)} (${duration(heldMillis)})`,
    `lapses in ${duration(lapseMillis)} unless renewed`,
    plural(hits, 'hit', 'hits'),
  ];
  setText(element.children[1], parts.filter(Boolean).join('; '));
}

/** The work of the holder may go on, so the first click only asks. */
function endButton(key, { handle, holder = 'a holder that is not named' }) {
  const button = make('button', { type: 'button', class: 'small' }, 'End');
  let timer;
  const rest = () => {
    clearTimeout(timer);
    timer = undefined;
    setText(button, 'End');
    button.setAttribute('aria-label', `End the hold of ${holder}`);
  };
  const askFirst = () => {
    setText(button, 'End now?');
    button.setAttribute('aria-label', `End now? The hold of ${holder}`);
    timer = setTimeout(rest, ASKING_MILLIS);
  };
  button.addEventListener('click', async () => {
    if (timer === undefined) {
      askFirst();
      return;
    }
    rest();
    button.disabled = true;
    try {
      await attempt('holds/end', { key, handle });
      setText(byId('holders-problem'), '');
      setText(button, 'Ended');
    } catch (error) {
      setText(byId('holders-problem'), `Not ended: ${error.message}`);
      button.disabled = false;
    }
  });
  rest();
  return button;
}
