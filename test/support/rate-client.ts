import { debugState } from './debug-state.js';
import { begin, ratePath } from './http-client.js';
import { until } from './until.js';

/** The answer to a client, and the replica that sent it. */
export interface RateAnswer {
  readonly replica: string;
  readonly status: number;
  readonly requestId: string | undefined;
}

/** A check under way at one replica. */
export interface RateRequest {
  readonly answer: Promise<RateAnswer>;
  /** Closes the client's connection. `answer` rejects then. */
  disconnect(): void;
}

export function requestRate(replica: string, key: string, query = ''): RateRequest {
  const request = begin(replica, 'POST', `${ratePath(key)}?${query}`);
  const answer = request.answer.then(({ status, json }) => {
    const { request_id: requestId } = json() as { request_id?: string };
    return { replica, status, requestId };
  });
  // Code that awaits the answer gets the error. A client that disconnects need not be awaited.
  answer.catch(() => undefined);
  return {
    answer,
    disconnect: () => {
      request.disconnect();
    },
  };
}

export async function waitingCount(replica: string, key: string): Promise<number> {
  return (await debugState(replica, key)).NumWaiting ?? 0;
}

/** Adds waiters to an empty queue one after the other, at the replicas in turn. */
export async function waitInTurn(
  replicas: readonly { readonly url: string }[],
  key: string,
  count: number,
  query = '',
): Promise<RateRequest[]> {
  const waiters: RateRequest[] = [];
  for (let i = 0; i < count; i += 1) {
    const { url } = replicas[i % replicas.length]!;
    waiters.push(requestRate(url, key, `canWait=true${query}`));
    await until(async () => (await waitingCount(replicas[0]!.url, key)) === i + 1);
  }
  return waiters;
}
