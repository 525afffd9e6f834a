import { untilWaiting } from './debug-state.js';
import { approve, begin, ratePath, send } from './http-client.js';

/**
 * One check of a key is approved, one denied, and one waits until it is approved: afterwards its rule, the limit that
 * denies, and its lane have series in `/metrics`.
 * @param key of which one check is approved at a time
 */
export async function traffic(url: string, key: string): Promise<void> {
  const id = await approve(url, key);
  await send(url, 'POST', ratePath(key));
  const waiting = begin(url, 'POST', `${ratePath(key)}?canWait=true`);
  await untilWaiting(url, key, 1);
  await send(url, 'DELETE', `${ratePath(key)}/${id}`);
  await waiting.answer;
}
