import { editedFragment } from './edited-fragment.js';

/** Scripts that know of no order of holds, as those of versions before it. */
export function beforeOrder(): Record<string, string> {
  return {
    ...editedFragment('lib/holds', ['FEW = 50', 'FEW = math.huge']),
    ...editedFragment('lib/stored', [
      'state[name] = value',
      "state[name] = name ~= 'orders_holds' and value or nil",
    ]),
  };
}

/** Scripts that keep the order from the second hold of a key on. */
export function orderOfFew(): Record<string, string> {
  return editedFragment('lib/holds', ['FEW = 50', 'FEW = 1']);
}
