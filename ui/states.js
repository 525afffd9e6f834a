// The states of keys, as chips and as a filter.

import { byId, make, setText } from './dom.js';
import { count } from './text.js';

/** In the order of the list: what needs a person comes first. */
const STATES = {
  paused: 'paused',
  denied: 'denied',
  queue_full: 'queue full',
  waiting: 'waiting',
  held: 'held',
  was_denied: 'was denied',
  used: 'used',
};

/** Shows the state that decides a key's place in the list. */
export function showChip(chip, { states: [state = 'idle'] }) {
  setText(chip, STATES[state] ?? state);
  chip.dataset.state = state;
}

/** Makes the filter. @param onChange gets the state to show, or undefined for all keys */
export function watchStates(onChange) {
  const choices = [['', 'all'], ...Object.entries(STATES)].map(([state, title]) =>
    make(
      'label',
      {},
      make('input', { type: 'radio', name: 'state', value: state }),
      make('span', {}, title),
      ' ',
      make('span', { class: 'value' }),
    ),
  );
  byId('states').append(...choices);
  choices[0].firstElementChild.checked = true;
  byId('states').addEventListener('change', ({ target }) => onChange(target.value || undefined));
}

/** @param counts how many keys are in each state */
export function showCounts(counts) {
  for (const { firstElementChild: input, lastElementChild: number } of byId('states').children) {
    if (input?.name === 'state' && input.value !== '') setText(number, count(counts[input.value]));
  }
}
