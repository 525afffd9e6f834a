import { classifyFailure, toLimiterError } from '../availability/store-errors.js';

/**
 * The replies of a script that replies for each of several limiter keys, with an error for each that failed.
 * @throws the first error, if none of them ran: the store has failed, and not a key
 */
export function replyForEach<Reply>(replies: readonly (Reply | Error)[]): (Reply | Error)[] {
  const [first] = replies;
  if (first instanceof Error && replies.every(isFailureOfStore)) throw first;
  return replies.map((reply) =>
    reply instanceof Error ? (toLimiterError(reply) as Error) : reply,
  );
}

function isFailureOfStore(reply: unknown): boolean {
  const failure = classifyFailure(reply);
  return failure !== 'fault' && failure !== 'full';
}
