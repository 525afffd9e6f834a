import { repliesOfCurrentCall } from './key-claims-codec.js';

/**
 * @returns for each key, in their order, whether the caller of each approval may be told, or its error
 * @throws the error of a key whose calendars do not hold Redis's time
 */
export function decodeConfirmed(reply: unknown): (boolean[] | Error)[] {
  return repliesOfCurrentCall<string>(reply).map((each) =>
    each instanceof Error ? each : Array.from(each, (digit) => digit === '1'),
  );
}
