import { ratePath, send } from '../../http-client.js';
import type { Fleet } from '../fleet.js';
import { lastWithin, within } from '../within.js';

/** By then everybody has noticed that Redis is back. On a busy machine answers may come too late for half a minute. */
const RECOVERED_WITHIN_MILLIS = 60_000;
const ANSWERED_WITHIN_MILLIS = 5_000;

/** Which replicas still can't decide, although nothing is wrong any more. */
export async function notRecovered(
  fleet: Pick<Fleet, 'indexes' | 'urlOf'>,
  keys: readonly string[],
): Promise<string[]> {
  const asked = fleet.indexes.flatMap((index) => keys.map((key) => ({ index, key })));
  const results = await Promise.all(
    asked.map(({ index, key }) =>
      lastWithin(
        RECOVERED_WITHIN_MILLIS,
        async () => {
          const problem = await problemOf(fleet.urlOf(index), key);
          return problem && `replica ${index} does not decide about ${key}: ${problem}`;
        },
        (problem) => problem === undefined,
      ),
    ),
  );
  return results.filter((problem) => problem !== undefined);
}

async function problemOf(url: string, key: string): Promise<string | undefined> {
  try {
    const { status, text } = await within(ANSWERED_WITHIN_MILLIS, 'an answer', () =>
      send(url, 'POST', ratePath(key)),
    );
    return status === 200 || status === 429 ? undefined : text;
  } catch (error) {
    return String(error);
  }
}
