// Asks before an action that hurts.

import { byId, setText } from './dom.js';

/**
 * Shows a dialog, and resolves to whether the action is wanted.
 * @param question what is asked: the action is the text of its button
 */
export function confirmed({ title, text, action }) {
  const dialog = byId('confirm');
  setText(byId('confirm-title'), title);
  setText(byId('confirm-text'), text);
  setText(byId('confirm-yes'), action);
  dialog.returnValue = '';
  dialog.showModal();
  byId('confirm-no').focus();
  return new Promise((resolve) => {
    dialog.addEventListener('close', () => resolve(dialog.returnValue === 'yes'), { once: true });
  });
}

export function isConfirming() {
  return byId('confirm').open;
}

export function watchConfirm() {
  byId('confirm-yes').addEventListener('click', () => byId('confirm').close('yes'));
  byId('confirm-no').addEventListener('click', () => byId('confirm').close());
}
