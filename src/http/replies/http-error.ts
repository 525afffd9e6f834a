import { type ErrorCode, type ErrorValues, messageOf } from './errors.js';

/** A request that is answered with an error of the table. */
export class HttpError extends Error {
  override readonly name = 'HttpError';

  constructor(
    readonly code: ErrorCode,
    message: string,
  ) {
    super(message);
  }
}

/** @param values fill the placeholders of the error's message */
export function httpError<Code extends ErrorCode>(
  code: Code,
  values: ErrorValues<Code>,
): HttpError {
  return new HttpError(code, messageOf(code, values));
}
