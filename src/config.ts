import { z } from 'zod';

import { BOUNDS } from './limiter/bounds.js';
import { wholeNumber, yesOrNo } from './text-schemas.js';

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
const ONE_HOUR_MILLIS = 60 * 60 * 1000;

function redisUrl() {
  return z
    .string()
    .refine(
      (text) => /^rediss?:\/\/\S+$/.test(text) && URL.canParse(text),
      'a URL that starts with redis:// or rediss://',
    );
}

/**
 * Every environment variable that Sluice reads. The README's table of settings says the same, and a
 * test compares the two. A variable that is set but empty counts as not set.
 */
export const settingsSchema = z.object({
  PORT: wholeNumber({ min: 0, max: 65_535 }).default(8080),
  HOST: z.string().default('0.0.0.0'),
  REDIS_URL: redisUrl().optional(),
  KEY_PREFIX: z
    .string()
    .regex(/^[^{}]{1,128}$/, '1 to 128 characters without { and }')
    .default('sluice:'),
  WINDOW_MILLIS: wholeNumber(BOUNDS.windowMillis).default(1000),
  MAX_REQUESTS: wholeNumber(BOUNDS.maxRequests).default(100),
  MAX_REQUESTS_IN_QUEUE: wholeNumber(BOUNDS.maxRequestsInQueue).default(400),
  REQUESTS_CAN_SET_RATE: yesOrNo().default(true),
  REQUESTS_CAN_MOD_QUEUE: yesOrNo().default(true),
  LOG_LEVEL: z.enum(LOG_LEVELS, { error: `one of ${LOG_LEVELS.join(', ')}` }).default('info'),
  LOG_2XX: yesOrNo().default(false),
  LOG_4XX: yesOrNo().default(false),
  LOG_5XX: yesOrNo().default(true),
  SHUTDOWN_GRACE_MILLIS: wholeNumber({ min: 0, max: ONE_HOUR_MILLIS }).default(10_000),
  STORE_TIMEOUT_MILLIS: wholeNumber({ min: 1, max: 60_000 }).default(500),
  REPLICA_LEASE_MILLIS: wholeNumber({ min: 500, max: ONE_HOUR_MILLIS }).default(5_000),
});

export type Settings = z.infer<typeof settingsSchema>;

/** A setting that Sluice can't take. The message names the variable, its value, and what it takes. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
}

/**
 * The settings in `environment`, with the defaults where it is silent.
 * @throws SettingsError for the first value that is not one the variable takes
 */
export function parseSettings(environment: Readonly<Record<string, string | undefined>>): Settings {
  const given = Object.fromEntries(
    Object.entries(environment).filter(([, value]) => value !== undefined && value !== ''),
  );
  const result = settingsSchema.safeParse(given);
  if (result.success) return result.data;
  const issue = result.error.issues[0];
  const name = String(issue?.path[0]);
  throw new SettingsError(
    `${name}: got ${shown(name, environment[name])}, takes ${issue?.message ?? 'another value'}`,
  );
}

/** Only REDIS_URL may hold a password. */
function shown(name: string, value: string | undefined): string {
  return name === 'REDIS_URL' ? 'a value that is not shown' : JSON.stringify(value);
}
