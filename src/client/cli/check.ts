import type { Denial } from '../index.js';
import { SluiceDeniedError } from '../index.js';
import type { Invocation } from './arguments.js';
import { withClient } from './with-client.js';
import { askingOf } from './request-options.js';
import { EXIT } from './exit-codes.js';
import { print, printJson } from './output.js';
import { Signals } from './signals.js';

/**
 * `check`: prints the request id of an approval.
 * @returns the exit code
 * @throws CommandLineError if the options are wrong
 */
export function check(invocation: Invocation): Promise<number> {
  const { values } = invocation;
  const { hold: holdMillis, 'max-wait': maxWaitMillis, wait, json } = values;
  return withClient(invocation, async (client, key, messages) => {
    const signals = new Signals();
    const asking = { ...askingOf(values), holdMillis, signal: signals.interruption };
    try {
      const decision = await (wait || maxWaitMillis !== undefined
        ? client.wait(key, { ...asking, maxWaitMillis, onProgress: messages.waits })
        : client.check(key, { ...asking, quota: true }));
      if (json) {
        const { approved, ...more } = decision;
        printJson({ approved, key, ...more });
      } else if (decision.approved) {
        messages.approved(decision.requestId);
        print(decision.requestId);
      } else {
        messages.failed(deniedBy(key, decision));
      }
      return decision.approved ? EXIT.OK : EXIT.DENIED;
    } finally {
      signals.release();
    }
  });
}

function deniedBy(key: string, { retryAfterSeconds, limit }: Denial): SluiceDeniedError {
  return new SluiceDeniedError(key, retryAfterSeconds, limit);
}
