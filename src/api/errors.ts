import type { ERRORS } from '../service/errors.js';

/** The errors with status 503 that are certain to have counted nothing. */
type UncountedError =
  'STORE_FULL' | 'KEY_FULL' | 'SHUTTING_DOWN' | 'TOO_MANY_WAITERS' | 'TOO_MANY_WAITERS_OF_CALLER';

/** The message about an approval that does not exist. */
export type NotFoundMessage = (typeof ERRORS)['REQUEST_NOT_FOUND']['message'];

/** The messages of the errors that are certain to have counted nothing. */
export type UncountedMessage = (typeof ERRORS)[UncountedError]['message'];
