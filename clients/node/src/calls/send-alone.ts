import type { Answer } from './exchange.js';
import type { PendingRequest } from './pending-request.js';

type LoneRequest = Pick<
  PendingRequest<never, Answer, never>,
  'isSent' | 'onGone' | 'answered' | 'failed'
>;

/** Sends a request that shares its connection with no other. If its caller leaves, the connection is closed. */
export function sendAlone(
  request: LoneRequest,
  send: (signal: AbortSignal) => Promise<Answer>,
): Promise<void> {
  const connection = new AbortController();
  request.onGone = () => {
    connection.abort();
  };
  return answerWith(request, send(connection.signal));
}

/** Answers a request once there is an answer. */
export async function answerWith(request: LoneRequest, answer: Promise<Answer>): Promise<void> {
  request.isSent = true;
  try {
    request.answered(await answer);
  } catch (error) {
    request.failed(error);
  }
}
