import { inspect } from 'node:util';

import { SettingsError } from '../../src/config/named-file.js';
import { parseSettings, type Settings } from '../../src/config/settings.js';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The settings of an empty environment. */
export const DEFAULTS: Settings = {
  PORT: 8080,
  HOST: '0.0.0.0',
  SHUTDOWN_DELAY_MILLIS: 0,
  SHUTDOWN_GRACE_MILLIS: 10_000,
  WINDOW_MILLIS: 1000,
  MAX_REQUESTS: 100,
  ALGORITHM: 'fixed_window',
  WINDOW_STEPS: 10,
  BURST: 1,
  MAX_REQUESTS_IN_QUEUE: 400,
  REQUESTS_CAN_SET_RATE: true,
  REQUESTS_CAN_MOD_QUEUE: true,
  MAX_REQUESTS_CEILING: 1_000_000_000,
  MAX_REQUESTS_IN_QUEUE_CEILING: 100_000,
  REQUESTS_CAN_SET_WINDOW: true,
  WINDOW_MILLIS_CEILING: 31_622_400_000,
  REQUESTS_CAN_HOLD: true,
  MAX_HOLD_MILLIS: 86_400_000,
  MAX_KEEP_MILLIS: 60_000,
  UNKNOWN_KEYS: 'allow',
  GRPC_KEY_TEMPLATE: '{domain}:{entries}',
  RATE_LIMIT_HEADERS: 'draft',
  REDIS_MODE: 'standalone',
  KEY_PREFIX: 'sluice:',
  STORE_TIMEOUT_MILLIS: 500,
  STORE_OUTAGE_POLICY: 'deny',
  READY_DURING_OUTAGE: false,
  REPLICA_LEASE_MILLIS: 3000,
  MAX_KEYS: 1_000_000,
  MAX_IDS_PER_KEY: 1_000_000,
  MAX_HOLDS_PER_KEY: 1000,
  MAX_GROUPS_PER_KEY: 10_000,
  MAX_WAITERS: 10_000,
  MAX_CONNECTIONS: 20_000,
  MAX_IN_FLIGHT_PER_CONNECTION: 100,
  MAX_EVENT_LOOP_DELAY_MILLIS: 250,
  DEBUG_ENDPOINTS: true,
  LOG_LEVEL: 'info',
  LOG_2XX: false,
  LOG_4XX: false,
  LOG_5XX: true,
  secretFiles: {},
};

/** The message with which Sluice rejects these settings at the start. */
export function refusal(environment: Environment): string {
  return refusedWith(environment).message;
}

/** Everything that a log could show of the error: message, stack, cause. */
export function refusalAsLogged(environment: Environment): string {
  return inspect(refusedWith(environment), { depth: Infinity });
}

function refusedWith(environment: Environment): SettingsError {
  try {
    parseSettings(environment);
  } catch (error) {
    expect(error).toBeInstanceOf(SettingsError);
    return error as SettingsError;
  }
  throw new Error(`${JSON.stringify(environment)} was accepted`);
}
