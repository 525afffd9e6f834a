import { type ErrorCode, type ErrorValues, messageOf } from './errors.js';

/** A request that is answered with an error of the table. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';

  constructor(
    readonly code: ErrorCode,
    message: string,
    /** The values of the placeholders in the message. */
    readonly values: Readonly<Record<string, string | number>>,
  ) {
    super(message);
  }
}

/** @param values fill the placeholders of the error's message */
export function serviceError<Code extends ErrorCode>(
  code: Code,
  values: ErrorValues<Code>,
): ServiceError {
  return new ServiceError(code, messageOf(code, values), values);
}

export function invalidParameter(parameter: string, must: string): ServiceError {
  return serviceError('INVALID_PARAMETER', { parameter, must });
}
