// What the page asks of the service. The token is kept here, in memory, and nowhere else.

/** An answer other than a success. */
export class AnswerError extends Error {
  constructor(status, message, headers) {
    super(message);
    this.status = status;
    this.retryAfter = headers.get('retry-after');
  }
}

const PATIENCE_MILLIS = 15_000;

let token;

export function useToken(text) {
  token = text;
}

export function hasToken() {
  return token !== undefined;
}

/** Reads data for the page. Gives up after a timeout, or when `signal` is aborted. */
export function read(path, query, signal) {
  return ask('GET', path, query, AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MILLIS)]));
}

/**
 * Checks, waits, releases, or ends a hold.
 * @param signal gives up the place in the queue
 */
export function attempt(path, query, signal) {
  return ask('POST', path, query, signal);
}

async function ask(method, path, query, signal) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const headers = token === undefined ? {} : { Authorization: `Bearer ${token}` };
  const response = await fetch(`ui/${path}?${new URLSearchParams(given)}`, {
    method,
    headers,
    signal,
    cache: 'no-store',
    credentials: 'omit',
    redirect: 'error',
  });
  const text = await response.text();
  const body = response.headers.get('content-type') === 'application/json' ? JSON.parse(text) : {};
  if (response.ok) return { body, headers: response.headers };
  throw new AnswerError(
    response.status,
    body.error ?? `status ${response.status}`,
    response.headers,
  );
}
