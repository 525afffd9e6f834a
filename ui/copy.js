// Puts a text on the clipboard.

import { make } from './dom.js';

const TOLD_MILLIS = 1500;

/** A button that copies a text, and says that it has. */
export function copyButton(text, label) {
  const button = make('button', { type: 'button', class: 'small', 'aria-label': label }, 'Copy');
  button.addEventListener('click', () => copyBy(button, text));
  return button;
}

/** Copies a text, and has the button say so for a moment. */
export async function copyBy(button, text) {
  const before = button.textContent;
  const done = await copy(text);
  button.textContent = done ? 'Copied' : 'Not copied';
  setTimeout(() => (button.textContent = before), TOLD_MILLIS);
}

/** Over plain HTTP browsers have no clipboard to write to, but copy what is selected. */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(text);
  }
}

function copySelected(text) {
  const focused = document.activeElement;
  const area = make('textarea', { readonly: '', class: 'hidden', 'aria-hidden': 'true' });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  focused?.focus();
  return done;
}
