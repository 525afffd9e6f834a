import type { Redis } from 'ioredis';
import { pino } from 'pino';

import { eventLoop } from '../../src/common/ticks.js';
import type { ScriptClientParts } from '../../src/redis/scripts/script-client.js';
import { FORM } from './redis-user.js';

const SHARD = 'primary';

/** What scripts that run on one connection need. */
export function scriptClientParts(client: Redis): ScriptClientParts {
  return {
    connections: {
      commands: client,
      isCluster: false,
      slotOf: () => 0,
      shardOf: () => SHARD,
      nodeAt: () => client,
      primaries: () => new Map([[SHARD, client]]),
    },
    ticks: eventLoop,
    clock: performance,
    logger: pino({ enabled: false }),
    onlyScripts: FORM === 'script',
  };
}
