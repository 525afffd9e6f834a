import { type ErrorCode, ERRORS } from '../../src/service/errors.js';

/** Matches the texts that a message of the table of errors can become. */
const MESSAGES = new Map(
  Object.entries(ERRORS).map(([code, { message }]) => {
    const parts = message
      .split(/\{\w+\}/)
      .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
    return [code, new RegExp(`^${parts.join('[^]*')}$`)];
  }),
);

/**
 * The body of an answer, without the code of its error, or those of the results of a bulk request. Each must be the code of its
 * message and of its status, so that every test which compares an error also checks its code.
 * @throws Error if a code is missing or another one
 */
export function withCheckedCodes(status: number, body: unknown): unknown {
  if (!Array.isArray(body)) return withCheckedCode(status, body);
  return body.map((result: { readonly status?: unknown } | null) =>
    withCheckedCode(Number(result?.status), result),
  );
}

function withCheckedCode(status: number, body: unknown): unknown {
  if (typeof body !== 'object' || body === null || !('error' in body)) return body;
  const { code, ...others } = body as { readonly error: string; readonly code?: ErrorCode };
  const isOfMessage = code !== undefined && MESSAGES.get(code)?.test(others.error) === true;
  if (!isOfMessage || ERRORS[code].status !== status) {
    throw new Error(`${status} ${JSON.stringify(body)} has no code, or the code of another error`);
  }
  return others;
}
