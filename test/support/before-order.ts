import { editedFragment } from './edited-fragment.js';

/** Scripts that know of no order of holds, as those of versions before it. They write `more` as 1. */
export function beforeOrder(): Record<string, string> {
  return {
    ...editedFragment('lib/holds', ['FEW = 50', 'FEW = math.huge']),
    ...editedFragment('lib/stored', ["values[6] == '2'", 'false']),
  };
}

/** Scripts that keep the order from the second hold of a key on. */
export function orderOfFew(): Record<string, string> {
  return editedFragment('lib/holds', ['FEW = 50', 'FEW = 1']);
}
