// Pauses a key, and ends its holds.

import { confirmed } from './confirm.js';
import { byId, setText } from './dom.js';
import { attempt } from './service.js';
import { duration } from './text.js';

/**
 * Watches the buttons of a key.
 * @param keyNow the key that is shown
 * @param onDone is called after an action
 */
export function watchPause(keyNow, onDone) {
  byId('pause').addEventListener('submit', async (event) => {
    event.preventDefault();
    const pauseMillis = Number(byId('pause-length').value);
    const key = keyNow();
    const isWanted = await confirmed({
      title: `Pause ${key} for ${duration(pauseMillis)}?`,
      text: 'No request is approved until the pause ends. Waiting requests keep their places, and holders their holds.',
      action: 'Pause key',
    });
    if (isWanted) await act(byId('pause-key'), 'pause', { key, pauseMillis }, onDone);
  });
  byId('resume-key').addEventListener('click', ({ target }) =>
    act(target, 'pause', { key: keyNow(), pauseMillis: 0 }, onDone),
  );
}

/** Ends a hold, once somebody has confirmed it: the work of the holder may go on. */
export async function endHold(button, key, { handle, holder }, onDone) {
  const name = holder ?? 'a caller without a name';
  const isWanted = await confirmed({
    title: `End the hold of ${name}?`,
    text: `Its approval of ${key} is free at once, and the next waiting request may get it. Its work is not stopped; it learns of the end when it renews the hold.`,
    action: 'End hold',
  });
  if (isWanted) await act(button, 'holds/end', { key, handle }, onDone);
}

async function act(button, path, query, onDone) {
  button.disabled = true;
  try {
    await attempt(path, query);
    setText(byId('action-problem'), '');
  } catch (error) {
    setText(byId('action-problem'), `Not done: ${error.message}`);
  } finally {
    button.disabled = false;
  }
  onDone();
}

/** @param detail the answer of `ui/data/key` */
export function showActions({ may, pausedMillis = 0 }) {
  const isPaused = pausedMillis > 0;
  for (const part of [byId('pause-length'), ...byId('pause-length').labels]) part.hidden = isPaused;
  byId('pause-key').hidden = isPaused;
  byId('resume-key').hidden = !isPaused;
  for (const control of byId('pause').elements) control.disabled = !may.pause;
  for (const control of byId('try').querySelectorAll('button')) control.disabled = !may.check;
  const lacks = [
    !may.pause && 'pausing takes the scopes check and configure',
    !may.endHolds && 'ending holds takes configure',
    !may.check && 'checks take check',
  ].filter(Boolean);
  byId('rights').hidden = lacks.length === 0;
  setText(byId('rights'), `This token lacks scopes: ${lacks.join('; ')}.`);
}
