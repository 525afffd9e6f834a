import type { LogLine } from '../replica-process.js';

const READ_AGAIN = /^rules (reloaded|not reloaded, the last good ones stay in use)$/;

/** Whether a line of the log says that the service has read its rules file again. */
export function isOfRules({ msg }: LogLine): boolean {
  return READ_AGAIN.test(String(msg));
}
