import { repliesOfCurrentCall } from './key-claims-codec.js';

/**
 * @param onUnclaimed gets the number of unclaimed approvals that have lapsed
 * @returns for each key, in their order, how many were withdrawn or released, or its error
 * @throws the error of a key whose calendars do not hold Redis's time
 */
export function decodeWithdrawn(
  reply: unknown,
  onUnclaimed: (count: number) => void,
): (number | Error)[] {
  return repliesOfCurrentCall<number | string>(reply).map((each) => {
    if (typeof each !== 'string') return each;
    const [gone, unclaimed] = each.split('!').map(Number);
    onUnclaimed(unclaimed ?? 0);
    return gone ?? 0;
  });
}
