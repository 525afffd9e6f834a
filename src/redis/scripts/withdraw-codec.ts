import type { KeyNames } from '../shared/key-names.js';
import { encodeRules } from './limits-codec.js';
import { timeOfStaleCall } from './stale-calendars.js';
import { type CallerSettings, keysOf, sharedArguments } from './shared-arguments.js';

/** Requests for one key for which nobody waits any more, by their claims. */
export interface Withdrawal {
  readonly names: KeyNames;
  /** At least 1, at most 1000. */
  readonly claims: readonly string[];
}

/**
 * KEYS and ARGV of `lua/withdraw.lua`. The limits of the first key are those of the call.
 * @param time of Redis, for calendars
 */
export function encodeWithdrawals(
  settings: CallerSettings,
  withdrawals: readonly [Withdrawal, ...Withdrawal[]],
  time: number,
): { readonly keys: string[]; readonly args: (string | number)[] } {
  const [{ names: first }] = withdrawals;
  const ofCall = settings.limitsOf(first.key);
  const shapes = withdrawals.map(({ names, claims }) => {
    const limits = settings.limitsOf(names.key);
    return limits === ofCall ? `${claims.length}` : `${claims.length}=${encodeRules(limits, time)}`;
  });
  return {
    keys: withdrawals.flatMap(({ names }) => keysOf(names)),
    args: [
      ...sharedArguments(settings, first, ofCall, time),
      shapes.join(' '),
      ...withdrawals.flatMap(({ claims }) => claims),
    ],
  };
}

/**
 * @returns for each key, in their order, how many were withdrawn or released, or its error
 * @throws the error of a key whose calendars do not hold Redis's time. To withdraw the others again changes nothing
 */
export function decodeWithdrawn(reply: unknown): (number | Error)[] {
  const replies = reply as (number | Error)[];
  const stale = replies.find((each) => timeOfStaleCall(each) !== undefined);
  if (stale) throw stale as Error;
  return replies;
}
