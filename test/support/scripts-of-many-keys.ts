import type { Redis } from 'ioredis';

import { UNKNOWN_HISTORY } from '../../src/redis/caller-history.js';
import { Scripts } from '../../src/redis/scripts/scripts.js';
import { type DeclaredLimits, keyLimits } from './limits.js';
import { scriptClientParts } from './script-client-parts.js';
import { unguarded, unobserved } from './unguarded.js';

export interface ScriptSettings {
  readonly guard?: typeof unguarded;
  readonly onlyScripts?: boolean;
  readonly leaseMillis?: number;
  readonly wakeArgument?: string;
  readonly history?: string;
}

/** The scripts of one replica for any keys, by Redis's own clock. */
export function scriptsOfManyKeys(
  client: Redis,
  limitsOf: (key: string) => DeclaredLimits,
  settings: ScriptSettings = {},
): Scripts {
  const { guard = unguarded, history = UNKNOWN_HISTORY, ...others } = settings;
  const parts = scriptClientParts(client);
  return new Scripts({ ...parts, onlyScripts: others.onlyScripts ?? parts.onlyScripts }, guard, {
    limitsOf: (key) => keyLimits(limitsOf(key)),
    replicaId: 'r1',
    leaseMillis: others.leaseMillis ?? 5000,
    maxIdsPerKey: 100_000,
    maxHoldsPerKey: 1000,
    maxGroupsPerKey: 1000,
    wakeArgument: others.wakeArgument ?? 'PUBLISH :wake',
    historyOf: () => history,
    observer: unobserved,
    timeOf: () => 0,
  });
}
