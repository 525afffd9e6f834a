import {
  SluiceDeniedError,
  SluiceError,
  SluicePermitLostError,
  SluiceUnavailableError,
} from '../index.js';
import { shownTime } from './durations.js';
import { codeOfSignal, CommandStartError, EXIT, InterruptedError, OutputError } from './errors.js';

/** The exit code for an error of the client, or of a command. @throws any other error */
export function exitCodeOf(error: unknown): number {
  if (error instanceof SluiceDeniedError) return EXIT.DENIED;
  if (error instanceof SluicePermitLostError) return EXIT.LOST;
  if (error instanceof SluiceUnavailableError) return EXIT.UNAVAILABLE;
  if (error instanceof SluiceError) return EXIT.USAGE;
  if (error instanceof InterruptedError) return codeOfSignal(error.signal);
  if (error instanceof CommandStartError) return error.exitCode;
  if (error instanceof OutputError) return EXIT.UNWRITABLE;
  throw error;
}

/** What a failure is called in a line. @param urls the addresses that were asked */
export function textOf(error: unknown, urls: readonly string[]): string {
  if (error instanceof SluiceDeniedError) {
    const by = error.limit === undefined ? '' : ` by the limit ${error.limit}`;
    return `denied${by}, try again in ${shownTime(error.retryAfterSeconds * 1000)}`;
  }
  if (error instanceof SluicePermitLostError) return `the hold is lost: ${error.message}`;
  const message = messageOf(error);
  if (!(error instanceof SluiceError)) return message;
  if (error.status !== undefined) return `${message} (status ${error.status})`;
  if (error instanceof SluiceUnavailableError) return `${message} (${urls.join(', ')})`;
  const { cause } = error;
  return cause === undefined ? message : `${message}: ${messageOf(cause)}`;
}

export interface MessageEvent {
  readonly event: string;
  readonly [field: string]: unknown;
}

export function eventOf(error: unknown): MessageEvent {
  if (error instanceof SluiceDeniedError) {
    const { retryAfterSeconds, limit } = error;
    return { event: 'denied', retryAfterSeconds, limit };
  }
  if (error instanceof SluicePermitLostError) return { event: 'lost', error: error.message };
  const { code, status } = error instanceof SluiceError ? error : {};
  return { event: 'error', error: messageOf(error), code, status };
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
