import type { Invocation } from './arguments.js';
import { withClient } from './with-client.js';
import { askingOf } from './request-options.js';
import { Child } from './child.js';
import { EXIT } from './exit-codes.js';
import type { Messages } from './messages.js';
import { Signals } from './signals.js';

const DEFAULT_GRACE_MILLIS = 10_000;

/**
 * `run`: runs CMD while it holds an approval.
 * @returns the exit code
 * @throws CommandLineError if the options are wrong
 */
export function run(invocation: Invocation): Promise<number> {
  const { values, commandLine } = invocation;
  const { grace = DEFAULT_GRACE_MILLIS } = values;
  return withClient(invocation, async (client, key, messages) => {
    const signals = new Signals();
    const work = async (lost: AbortSignal, requestId: string): Promise<number> => {
      messages.approved(requestId);
      const environment = { SLUICE_KEY: key, SLUICE_REQUEST_ID: requestId };
      const child = await Child.start(commandLine, environment, messages.unsignalled);
      signals.receiver = (signal) => {
        child.pass(signal);
      };
      return codeOf(child, lost, grace, messages);
    };
    try {
      return await client.withPermit(key, work, {
        ...askingOf(values),
        holdMillis: values.hold,
        wait: !values['no-wait'],
        maxWaitMillis: values['max-wait'],
        signal: signals.interruption,
        onProgress: messages.waits,
        onReleaseError: messages.unreleased,
      });
    } finally {
      signals.release();
    }
  });
}

/** Waits for the end of CMD, and ends it if the hold is lost. @returns the exit code of `run` */
async function codeOf(
  child: Child,
  lost: AbortSignal,
  graceMillis: number,
  messages: Messages,
): Promise<number> {
  let stopped: Promise<void> | undefined;
  const stop = (): void => {
    messages.lost(lost.reason as Error);
    stopped = child.stop(graceMillis);
  };
  if (lost.aborted) stop();
  else lost.addEventListener('abort', stop);
  const code = await child.ended;
  lost.removeEventListener('abort', stop);
  if (!stopped) return code;
  await stopped;
  return EXIT.LOST;
}
