import type { InstanceState } from '../../../limiter/limiter.js';
import { capacityOf } from '../../../limiter/limits.js';
import type { DeniedKey } from '../../../service/deciding/recent-denials.js';

/** The states of a key, in the order in which they need a person. A key has any number of them. */
export const KEY_STATES = ['paused', 'denied', 'queue_full', 'waiting', 'held', 'used'] as const;
export type KeyState = (typeof KEY_STATES)[number];

/** How much of a state a key has; 0 if it is not in the state. */
type AmountOf = (state: InstanceState, run: DeniedKey | undefined) => number;

const AMOUNTS: Readonly<Record<KeyState, AmountOf>> = {
  paused: ({ pausedMillis }) => pausedMillis,
  denied: denialsOf,
  queue_full: ({ waiting, maxRequestsInQueue }) => (waiting >= maxRequestsInQueue ? waiting : 0),
  waiting: ({ waiting }) => waiting,
  held: ({ held }) => held,
  used: (state) => (state.limits.some(({ used }) => used > 0) ? fillOf(state) : 0),
};

/** @param run of the denials of the key, if it is denied now */
export function statesOf(state: InstanceState, run: DeniedKey | undefined): KeyState[] {
  return KEY_STATES.filter((name) => AMOUNTS[name](state, run) > 0);
}

/** How much a key needs a person: by its first state, and of the keys in that state, by how much. */
export function needOf(state: InstanceState, run: DeniedKey | undefined): number {
  for (const [index, name] of KEY_STATES.entries()) {
    const amount = AMOUNTS[name](state, run);
    if (amount > 0) return KEY_STATES.length - index + amount / (1 + amount);
  }
  return 0;
}

/** Of the limit that is fullest: at most 1, also if its maximum was lowered in mid-window. */
export function fillOf({ limits }: Pick<InstanceState, 'limits'>): number {
  const fills = limits.map((limit) => {
    const capacity = capacityOf(limit);
    return capacity === 0 ? 1 : limit.used / capacity;
  });
  return Math.min(1, Math.max(...fills));
}

/** Denials per second: those of the current run, or those of all replicas in this window, which may have just begun. */
function denialsOf({ denied, limits: [own] }: InstanceState, run: DeniedKey | undefined): number {
  return Math.max(run?.perSecond ?? 0, (denied * 1000) / own.windowMillis);
}
