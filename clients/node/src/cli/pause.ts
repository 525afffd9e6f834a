import type { Invocation } from './arguments.js';
import { withClient } from './connection.js';
import { parseDuration } from './durations.js';
import { CommandLineError, EXIT } from './errors.js';
import { print, printJson } from './messages.js';

export async function pause(invocation: Invocation): Promise<number> {
  const [, duration] = invocation.operands;
  const { end, json } = invocation.values;
  if ((duration === undefined) === (end === undefined)) {
    throw new CommandLineError('pause needs DURATION or --end');
  }
  const pauseMillis = duration === undefined ? 0 : parseDuration('DURATION', duration);
  return withClient(invocation, async (client, key) => {
    await client.pause(key, pauseMillis);
    if (json) await printJson({ key, pauseMillis });
    else
      await print(`${key}: ${pauseMillis === 0 ? 'pause ended' : `paused for ${duration ?? ''}`}`);
    return EXIT.OK;
  });
}
