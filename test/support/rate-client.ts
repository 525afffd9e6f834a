/** What a client was told, and by which replica. */
export interface RateAnswer {
  readonly replica: string;
  readonly status: number;
  readonly requestId: string | undefined;
}

/** A request under way to one replica. */
export interface RateRequest {
  readonly answer: Promise<RateAnswer>;
  /** Closes the client's connection. `answer` rejects then. */
  leave(): void;
}

export function requestRate(replica: string, key: string, query = ''): RateRequest {
  const client = new AbortController();
  const answer = (async () => {
    const response = await fetch(`${replica}/rate/${encodeURIComponent(key)}?${query}`, {
      method: 'POST',
      signal: client.signal,
    });
    const body = (await response.json()) as { request_id?: string };
    return { replica, status: response.status, requestId: body.request_id };
  })();
  // Whoever awaits it gets the error; a client that was made to leave need not be awaited.
  answer.catch(() => undefined);
  return {
    answer,
    leave: () => {
      client.abort();
    },
  };
}

export async function waitingCount(replica: string, key: string): Promise<number> {
  const response = await fetch(`${replica}/debug/${encodeURIComponent(key)}`);
  const body = (await response.json()) as { Found: boolean; NumWaiting?: number };
  return body.NumWaiting ?? 0;
}
