import type { Peek, Quota } from '../index.js';
import type { Invocation } from './arguments.js';
import { withClient } from './connection.js';
import { placeOf } from './options.js';
import { shownTime } from './durations.js';
import { EXIT } from './errors.js';
import { print, printJson } from './messages.js';

export function peek(invocation: Invocation): Promise<number> {
  const { values } = invocation;
  return withClient(invocation, async (client, key) => {
    const peeked = await client.peek(key, placeOf(values));
    const { allowed, waitMillis, limit, quota = [] } = peeked;
    if (values.json) await printJson({ allowed, key, waitMillis, limit, quota });
    else await print(`${key}: ${verdictOf(peeked)}`, ...quota.map(lineOf));
    return allowed ? EXIT.OK : EXIT.DENIED;
  });
}

function verdictOf({ allowed, waitMillis, limit }: Peek): string {
  if (allowed) return 'would be approved';
  const by = limit === undefined ? '' : ` by the limit ${limit}`;
  return `would be denied${by}, a turn would come in ${shownTime(waitMillis)}`;
}

function lineOf({ name, limit, remaining, resetSeconds }: Quota): string {
  const reset = shownTime(resetSeconds * 1000);
  return `  ${name}: ${remaining} of ${limit} remain, reset in ${reset}`;
}
