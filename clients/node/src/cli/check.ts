import type { Decision } from '../index.js';
import { SluiceDeniedError } from '../index.js';
import type { Invocation } from './arguments.js';
import { withClient } from './connection.js';
import { askingOf } from './options.js';
import { EXIT } from './errors.js';
import { type Messages, print, printJson } from './messages.js';
import { Signals } from './signals.js';

export function check(invocation: Invocation): Promise<number> {
  const { values } = invocation;
  const { hold: holdMillis, 'max-wait': maxWaitMillis, wait, json = false } = values;
  return withClient(invocation, async (client, key, messages) => {
    const signals = new Signals();
    const asking = { ...askingOf(values), holdMillis, signal: signals.interruption };
    try {
      const decision = await (wait || maxWaitMillis !== undefined
        ? client.wait(key, { ...asking, maxWaitMillis, onProgress: messages.waits })
        : client.check(key, { ...asking, quota: true }));
      try {
        await tell(key, decision, json, messages);
      } catch (error) {
        // Nobody knows the id.
        if (decision.approved) await client.release(key, decision.requestId);
        throw error;
      }
      return decision.approved ? EXIT.OK : EXIT.DENIED;
    } finally {
      signals.release();
    }
  });
}

/** @throws OutputError if the result can't be written */
async function tell(
  key: string,
  decision: Decision,
  isJson: boolean,
  messages: Messages,
): Promise<void> {
  if (isJson) {
    const { approved, ...more } = decision;
    await printJson({ approved, key, ...more });
  } else if (decision.approved) {
    messages.approved(decision.requestId);
    await print(decision.requestId);
  } else {
    messages.failed(new SluiceDeniedError(key, decision.retryAfterSeconds, decision.limit));
  }
}
