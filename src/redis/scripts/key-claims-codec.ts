import type { KeyNames } from '../shared/key-names.js';
import { encodeRules } from './limits-codec.js';
import { timeOfStaleCall } from './stale-calendars.js';
import { type CallerSettings, keysOf, sharedArguments } from './shared-arguments.js';

/** Requests for one key, by their claims. */
export interface KeyClaims {
  readonly names: KeyNames;
  /** At least 1, at most 1000. */
  readonly claims: readonly string[];
}

/**
 * KEYS and ARGV of `lua/withdraw.lua` and `lua/confirm.lua`. The limits of the first key are those of the call.
 * @param time of Redis, for calendars
 */
export function encodeKeyClaims(
  settings: CallerSettings,
  ofKeys: readonly [KeyClaims, ...KeyClaims[]],
  time: number,
): { readonly keys: string[]; readonly args: (string | number)[] } {
  const [{ names: first }] = ofKeys;
  const ofCall = settings.limitsOf(first.key);
  const shapes = ofKeys.map(({ names, claims }) => {
    const limits = settings.limitsOf(names.key);
    return limits === ofCall ? `${claims.length}` : `${claims.length}=${encodeRules(limits, time)}`;
  });
  return {
    keys: ofKeys.flatMap(({ names }) => keysOf(names)),
    args: [
      ...sharedArguments(settings, first, ofCall, time),
      shapes.join(' '),
      ...ofKeys.flatMap(({ claims }) => claims),
    ],
  };
}

/**
 * The replies to the keys, in their order.
 * @throws the error of a key whose calendars do not hold Redis's time. Calling again for the others changes nothing
 */
export function repliesOfCurrentCall<Reply>(reply: unknown): (Reply | Error)[] {
  const replies = reply as (Reply | Error)[];
  const stale = replies.find((each) => timeOfStaleCall(each) !== undefined);
  if (stale) throw stale as Error;
  return replies;
}
