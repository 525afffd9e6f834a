import type { ERRORS } from '../service/errors.js';

/** The errors with status 503 that are certain to have counted nothing. */
type UncountedError =
  'STORE_FULL' | 'KEY_FULL' | 'SHUTTING_DOWN' | 'TOO_MANY_WAITERS' | 'TOO_MANY_WAITERS_OF_CALLER';

/** The message about an approval that does not exist. */
export type NotFoundMessage = (typeof ERRORS)['REQUEST_NOT_FOUND']['message'];

/** The message of a check whose place a later check with its request id has taken over. */
export type TakenOverMessage = (typeof ERRORS)['PLACE_TAKEN_OVER']['message'];

/** The message of a check with the request id of an approval that has ended before its window. */
export type RequestIdUsedMessage = (typeof ERRORS)['REQUEST_ID_USED']['message'];

/** The messages of the errors that are certain to have counted nothing. */
export type UncountedMessage = (typeof ERRORS)[UncountedError]['message'];
