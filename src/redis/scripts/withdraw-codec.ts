import type { KeyNames } from '../shared/key-names.js';
import { encodeLimits } from './limits-codec.js';
import { type CallerSettings, keysOf, sharedArguments } from './shared-arguments.js';

/** Requests for one key for which nobody waits any more. */
export interface Withdrawal {
  readonly names: KeyNames;
  /** At least 1, at most 1000. */
  readonly requestIds: readonly string[];
}

/** KEYS and ARGV of `lua/withdraw.lua`. The limits of the first key are those of the call. */
export function encodeWithdrawals(
  settings: CallerSettings,
  withdrawals: readonly [Withdrawal, ...Withdrawal[]],
): { readonly keys: string[]; readonly args: (string | number)[] } {
  const [{ names: first }] = withdrawals;
  const ofCall = settings.limitsOf(first.key);
  const shapes = withdrawals.map(({ names, requestIds }) => {
    const limits = settings.limitsOf(names.key);
    return limits === ofCall
      ? `${requestIds.length}`
      : `${requestIds.length}=${encodeLimits(limits)}`;
  });
  return {
    keys: withdrawals.flatMap(({ names }) => keysOf(names)),
    args: [
      ...sharedArguments(settings, first, ofCall),
      shapes.join(' '),
      ...withdrawals.flatMap(({ requestIds }) => requestIds),
    ],
  };
}
