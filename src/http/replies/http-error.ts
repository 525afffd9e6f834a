import { type ErrorCode, type ErrorValues, messageOf } from './errors.js';
import type { Headers } from './headers.js';

/** A request that is answered with an error of the table. */
export class HttpError extends Error {
  override readonly name = 'HttpError';

  constructor(
    readonly code: ErrorCode,
    message: string,
    /** Those of this one alone. */
    readonly headers: Headers = [],
  ) {
    super(message);
  }
}

/** @param values fill the placeholders of the error's message */
export function httpError<Code extends ErrorCode>(
  code: Code,
  values: ErrorValues<Code>,
  headers: Headers = [],
): HttpError {
  return new HttpError(code, messageOf(code, values), headers);
}
