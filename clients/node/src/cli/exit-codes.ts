/** The exit codes, by their names in sysexits.h where one fits. CMD's own code, and 128 and a signal, come beside them. */
export const EXIT = {
  OK: 0,
  NOT_FOUND: 1,
  USAGE: 64,
  UNAVAILABLE: 69,
  LOST: 70,
  UNWRITABLE: 74,
  DENIED: 75,
  NOT_EXECUTABLE: 126,
  NO_SUCH_COMMAND: 127,
} as const;

/** Of a process that a signal has ended, from 129 on. */
export const SIGNAL_BASE = 128;
