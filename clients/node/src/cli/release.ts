import type { Invocation } from './arguments.js';
import { withClient } from './connection.js';
import { EXIT, PROGRAM } from './errors.js';
import { print, printJson, writeLine } from './messages.js';

export function release(invocation: Invocation): Promise<number> {
  const [, requestId = ''] = invocation.operands;
  return withClient(invocation, async (client, key) => {
    const released = await client.release(key, requestId);
    if (invocation.values.json) await printJson({ released, key, requestId });
    else if (released) await print(`${key}: released`);
    else writeLine(`${PROGRAM}: ${key}: no such approval`);
    return released ? EXIT.OK : EXIT.NOT_FOUND;
  });
}
