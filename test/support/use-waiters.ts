import { untilWaiting } from './debug-state.js';
import { begin, type PendingRequest, ratePath, send } from './http-client.js';

/** Uses up a key whose maximum is 1. Then one request waits for it after the other, each with its query. */
export type LetWait = (key: string, ...queries: readonly string[]) => Promise<void>;

/** Requests that wait until their test ends. */
export function useWaiters(app: { readonly url: string }): LetWait {
  const pending: PendingRequest[] = [];
  afterEach(() => {
    for (const request of pending.splice(0)) request.disconnect();
  });
  return async (key, ...queries) => {
    await send(app.url, 'POST', ratePath(key));
    for (const [index, query] of queries.entries()) {
      pending.push(begin(app.url, 'POST', `${ratePath(key)}?canWait=true&${query}`));
      await untilWaiting(app.url, key, index + 1);
    }
  };
}
