import type { SluiceClient } from '../index.js';
import type { Invocation } from './arguments.js';
import { waitingOf } from './request-options.js';
import { clientOf, connectionOf } from './connection.js';
import { exitCodeOf } from './failures.js';
import { jsonMessages } from './json-messages.js';
import type { Messages } from './messages.js';
import { textMessages } from './text-messages.js';

/**
 * Has a command ask Sluice about its key.
 * @param work returns the exit code
 * @returns the exit code, of a failure as well
 * @throws CommandLineError if the options are wrong
 */
export async function withClient(
  { operands: [key = ''], values }: Invocation,
  work: (client: SluiceClient, key: string, messages: Messages) => Promise<number>,
): Promise<number> {
  const { json, quiet = false } = values;
  const connection = connectionOf(values);
  const client = clientOf(connection, waitingOf(values));
  const messages = json ? jsonMessages(key, quiet) : textMessages(key, connection.urls, quiet);
  try {
    return await work(client, key, messages);
  } catch (error) {
    const code = exitCodeOf(error);
    messages.failed(error);
    return code;
  }
}
