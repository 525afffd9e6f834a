import type { Invocation } from './arguments.js';
import { withClient } from './connection.js';
import { parseDuration } from './durations.js';
import { CommandLineError, EXIT } from './errors.js';
import { print, printJson } from './messages.js';

export async function pause(invocation: Invocation): Promise<number> {
  const [, duration] = invocation.operands;
  const { group, end, json } = invocation.values;
  if ((duration === undefined) === (end === undefined)) {
    throw new CommandLineError('pause needs DURATION or --end');
  }
  const pauseMillis = duration === undefined ? 0 : parseDuration('DURATION', duration);
  return withClient(invocation, async (client, key) => {
    await client.pause(key, pauseMillis, { group });
    const paused = group === undefined ? key : `${key}, group ${group}`;
    const change = pauseMillis === 0 ? 'pause ended' : `paused for ${duration ?? ''}`;
    if (json) await printJson({ key, group, pauseMillis });
    else await print(`${paused}: ${change}`);
    return EXIT.OK;
  });
}
