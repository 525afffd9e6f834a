import type { WaitProgress } from '../index.js';

/** What a command writes on standard error. */
export interface Messages {
  /** It waits, at this place. */
  readonly waits: (place: WaitProgress) => void;
  /** Its wait is over. */
  readonly approved: (requestId: string) => void;
  /** The hold is lost, and CMD is ended. */
  readonly lost: (error: Error) => void;
  /** The approval could not be released. */
  readonly unreleased: (error: unknown) => void;
  /** CMD can't be sent a signal. */
  readonly unsignalled: (error: unknown) => void;
  /** The command has failed, was denied, or was interrupted. */
  readonly failed: (error: unknown) => void;
}
