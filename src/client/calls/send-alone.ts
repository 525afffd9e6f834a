import type { Answer } from './exchange.js';
import type { PendingRequest } from './pending-request.js';

/** Sends a request that shares its connection with no other. If its caller leaves, the connection is closed. */
export function sendAlone<Element, Result, Value>(
  request: PendingRequest<Element, Result, Value>,
  read: (answer: Answer) => Result,
  send: (signal: AbortSignal) => Promise<Answer>,
): Promise<void> {
  const connection = new AbortController();
  request.onGone = () => {
    connection.abort();
  };
  return answerWith(request, read, send(connection.signal));
}

/** Answers a request once there is an answer. */
export async function answerWith<Element, Result, Value>(
  request: PendingRequest<Element, Result, Value>,
  read: (answer: Answer) => Result,
  answer: Promise<Answer>,
): Promise<void> {
  request.isSent = true;
  try {
    answered(request, read, await answer);
  } catch (error) {
    request.failed(error);
  }
}

/** Answers a request. @param read throws what the request is to fail with */
export function answered<Element, Result, Value>(
  request: PendingRequest<Element, Result, Value>,
  read: (answer: Answer) => Result,
  answer: Answer,
): void {
  try {
    request.answered(read(answer));
  } catch (error) {
    request.failed(error);
  }
}
