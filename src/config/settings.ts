import { isIP } from 'node:net';

import { z } from 'zod';

import {
  ALGORITHM_NAMES,
  DEFAULT_ALGORITHM,
  forEachParameter,
  PARAMETERS,
} from '../limiter/kinds/kinds.js';
import { BOUNDS } from '../limiter/bounds.js';
import { readSecretFiles, SECRETS, type SecretFiles } from './secret-files.js';
import { SettingsError } from './named-file.js';
import { listOf, wholeNumber, yesOrNo } from './text-schemas.js';

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const;
const ONE_HOUR_MILLIS = 60 * 60 * 1000;
const NOTHING = 'nothing';

function oneOf<const Values extends readonly string[]>(values: Values) {
  return z.enum(values, { error: `one of ${values.join(', ')}` });
}

function isRedisUrl(text: string): boolean {
  if (!/^rediss?:\/\/\S+$/.test(text) || !URL.canParse(text)) return false;
  const { pathname, search, hash } = new URL(text);
  // After the host, an @ shows that a raw character has ended the host too early.
  return !(pathname + search + hash).includes('@');
}

/** As a browser sends it. */
function isOrigin(text: string): boolean {
  return /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text;
}

/** An IPv6 address has no brackets here. */
function isHostName(text: string): boolean {
  return text === '*' || isIP(text) !== 0 || /^[\w.-]+$/.test(text);
}

/**
 * Every environment variable that Sluice reads, except the `<NAME>_FILE` variables of {@link SECRETS}. The
 * tables of docs/settings.md say the same, and a test compares the two. An empty variable counts as not set.
 */
export const settingsSchema = z.object({
  PORT: wholeNumber({ min: 0, max: 65_535 }).default(8080),
  HOST: z.string().default('0.0.0.0'),
  ADMIN_PORT: wholeNumber({ min: 0, max: 65_535 }).optional(),
  GRPC_PORT: wholeNumber({ min: 0, max: 65_535 }).optional(),
  SHUTDOWN_DELAY_MILLIS: wholeNumber({ min: 0, max: ONE_HOUR_MILLIS }).default(0),
  SHUTDOWN_GRACE_MILLIS: wholeNumber({ min: 0, max: ONE_HOUR_MILLIS }).default(10_000),

  WINDOW_MILLIS: wholeNumber(BOUNDS.windowMillis).default(1000),
  MAX_REQUESTS: wholeNumber(BOUNDS.maxRequests).default(100),
  ALGORITHM: oneOf(ALGORITHM_NAMES).default(DEFAULT_ALGORITHM.name),
  ...forEachParameter('setting', ({ bounds, default: value }) =>
    wholeNumber(bounds).default(value),
  ),
  MAX_REQUESTS_IN_QUEUE: wholeNumber(BOUNDS.maxRequestsInQueue).default(400),
  REQUESTS_CAN_SET_RATE: yesOrNo().default(true),
  REQUESTS_CAN_MOD_QUEUE: yesOrNo().default(true),
  MAX_REQUESTS_CEILING: wholeNumber(BOUNDS.maxRequests).default(BOUNDS.maxRequests.max),
  MAX_REQUESTS_IN_QUEUE_CEILING: wholeNumber(BOUNDS.maxRequestsInQueue).default(
    BOUNDS.maxRequestsInQueue.max,
  ),
  REQUESTS_CAN_SET_WINDOW: yesOrNo().default(true),
  WINDOW_MILLIS_CEILING: wholeNumber(BOUNDS.windowMillis).default(BOUNDS.windowMillis.max),
  REQUESTS_CAN_HOLD: yesOrNo().default(true),
  MAX_HOLD_MILLIS: wholeNumber(BOUNDS.holdMillis).default(BOUNDS.holdMillis.max),
  MAX_KEEP_MILLIS: wholeNumber(BOUNDS.keepMillis).default(60_000),
  CONFIG_FILE: z.string().optional(),
  UNKNOWN_KEYS: oneOf(['allow', 'deny']).default('allow'),
  GRPC_KEY_TEMPLATE: z
    .string()
    .regex(
      /^(?=.*\{(entries|values)\})([^{}]|\{(domain|entries|values)\})*$/,
      'a text with {entries} or {values}, optionally {domain}, and no other braces',
    )
    .default('{domain}:{entries}'),
  RATE_LIMIT_HEADERS: oneOf(['off', 'draft', 'legacy']).default('draft'),

  REDIS_URL: z
    .string()
    .transform((text) => text.split(','))
    .refine(
      (urls) => urls.every(isRedisUrl),
      'a URL that starts with redis:// or rediss://, or several with commas between them; ' +
        'in a user or a password, percent-encode special characters, such as # / ? , as %23 %2F %3F %2C',
    )
    .optional(),
  REDIS_MODE: oneOf(['standalone', 'sentinel', 'cluster']).default('standalone'),
  REDIS_SENTINEL_MASTER: z.string().optional(),
  REDIS_USERNAME: z.string().optional(),
  REDIS_PASSWORD: z.string().optional(),
  REDIS_SENTINEL_USERNAME: z.string().optional(),
  REDIS_SENTINEL_PASSWORD: z.string().optional(),
  REDIS_DATABASE: wholeNumber({ min: 0, max: 1_000_000 }).optional(),
  REDIS_TLS_CA_FILE: z.string().optional(),
  REDIS_TLS_CERT_FILE: z.string().optional(),
  REDIS_TLS_KEY_FILE: z.string().optional(),
  REDIS_TLS_SERVER_NAME: z.string().optional(),
  KEY_PREFIX: z
    .string()
    .regex(/^[^{}]{1,128}$/, '1 to 128 characters without { and }')
    .default('sluice:'),
  STORE_TIMEOUT_MILLIS: wholeNumber({ min: 1, max: 60_000 }).default(500),
  STORE_OUTAGE_POLICY: oneOf(['deny', 'allow', 'local']).default('deny'),
  READY_DURING_OUTAGE: yesOrNo().default(false),
  REPLICA_LEASE_MILLIS: wholeNumber({ min: 500, max: ONE_HOUR_MILLIS }).default(3_000),

  MAX_KEYS: wholeNumber({ min: 1, max: 100_000_000 }).default(1_000_000),
  MAX_IDS_PER_KEY: wholeNumber({ min: 1, max: BOUNDS.maxRequests.max }).default(1_000_000),
  MAX_HOLDS_PER_KEY: wholeNumber({ min: 1, max: 10_000 }).default(1000),
  MAX_GROUPS_PER_KEY: wholeNumber({ min: 1, max: 100_000 }).default(10_000),
  MAX_WAITERS: wholeNumber({ min: 0, max: 1_000_000 }).default(10_000),
  MAX_WAITERS_PER_CALLER: wholeNumber({ min: 0, max: 1_000_000 }).optional(),
  MAX_CONNECTIONS: wholeNumber({ min: 1, max: 1_000_000 }).default(20_000),
  MAX_IN_FLIGHT_PER_CONNECTION: wholeNumber({ min: 1, max: 100_000 }).default(100),
  MAX_EVENT_LOOP_DELAY_MILLIS: wholeNumber({ min: 10, max: 60_000 }).default(250),

  AUTH_TOKENS_FILE: z.string().optional(),
  TLS_CERT_FILE: z.string().optional(),
  TLS_KEY_FILE: z.string().optional(),
  DEBUG_ENDPOINTS: yesOrNo().default(true),
  ALLOWED_ORIGINS: listOf(isOrigin, 'origins such as https://app.example').optional(),
  ALLOWED_HOSTS: listOf(isHostName, 'names without ports, or *').optional(),

  LOG_LEVEL: oneOf(LOG_LEVELS).default('info'),
  LOG_2XX: yesOrNo().default(false),
  LOG_4XX: yesOrNo().default(false),
  LOG_5XX: yesOrNo().default(true),
});

export type Settings = z.infer<typeof settingsSchema> & {
  /** The files of secrets, whose contents may change. */
  readonly secretFiles: SecretFiles;
};

/**
 * The settings in `environment`, with defaults for variables that are not set.
 * @throws SettingsError for the first value that the variable does not take, or that does not fit another
 * setting
 */
export function parseSettings(environment: Readonly<Record<string, string | undefined>>): Settings {
  const set = Object.fromEntries(
    Object.entries(environment).filter(
      (entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '',
    ),
  );
  const { settings: given, secretFiles } = readSecretFiles(set);
  const result = settingsSchema.safeParse(given);
  if (result.success) {
    return checkTogether({ ...result.data, secretFiles }, new Set(Object.keys(set)));
  }
  const issue = result.error.issues[0];
  const name = String(issue?.path[0]);
  const got = SECRETS.includes(name) ? 'a value that is not shown' : JSON.stringify(given[name]);
  throw new SettingsError(name, got, issue?.message ?? 'another value');
}

/**
 * Checks that the settings fit together.
 * @param given the names of the settings that are no defaults
 * @throws SettingsError that names a setting that does not fit
 */
function checkTogether(settings: Settings, given: ReadonlySet<string>): Settings {
  checkMode(settings);
  checkUrls(settings);
  checkPair(settings, 'REDIS_TLS');
  checkPair(settings, 'TLS');
  checkPorts(settings);
  checkAlgorithm(settings, given);
  const { UNKNOWN_KEYS, CONFIG_FILE } = settings;
  const isDenied = UNKNOWN_KEYS === 'deny' && CONFIG_FILE === undefined;
  demand(!isDenied, 'UNKNOWN_KEYS', '"deny"', 'CONFIG_FILE to be set as well');
  return settings;
}

/** @throws SettingsError unless the setting fits */
function demand(fits: boolean, name: string, value: string, takes: string): void {
  if (!fits) throw new SettingsError(name, value, takes);
}

function checkPorts(settings: Settings): void {
  const taken = new Map<number, string>();
  for (const name of ['PORT', 'ADMIN_PORT', 'GRPC_PORT'] as const) {
    const port = settings[name];
    // 0 is any free port.
    if (port === undefined || port === 0) continue;
    const other = taken.get(port);
    demand(other === undefined, name, String(port), `another port than ${other}`);
    taken.set(port, name);
  }
}

function checkMode(settings: Settings): void {
  const { REDIS_MODE: mode, REDIS_URL, REDIS_SENTINEL_MASTER, REDIS_DATABASE = 0 } = settings;
  const isStandalone = mode === 'standalone';
  demand(
    isStandalone || REDIS_URL !== undefined,
    'REDIS_MODE',
    JSON.stringify(mode),
    'REDIS_URL to be set as well',
  );
  demand(
    mode !== 'sentinel' || REDIS_SENTINEL_MASTER !== undefined,
    'REDIS_SENTINEL_MASTER',
    NOTHING,
    'the name of the primary that the sentinels watch',
  );
  demand(
    mode !== 'cluster' || REDIS_DATABASE === 0,
    'REDIS_DATABASE',
    String(REDIS_DATABASE),
    '0 with a cluster, which has no other',
  );
}

function checkUrls(settings: Settings): void {
  const { REDIS_MODE: mode, REDIS_URL = [] } = settings;
  const urls = REDIS_URL.map((url) => new URL(url));
  const databases = urls.map(({ pathname }) => pathname);
  const protocols = new Set(urls.map(({ protocol }) => protocol));
  const demandOfUrls = (fits: boolean, takes: string): void =>
    demand(fits, 'REDIS_URL', 'a value that is not shown', takes);
  demandOfUrls(mode !== 'standalone' || urls.length <= 1, 'one URL if REDIS_MODE is standalone');
  demandOfUrls(protocols.size <= 1, 'either redis:// or rediss://, not both');
  demandOfUrls(
    urls.every(({ username, password }) => isDecodable(username) && isDecodable(password)),
    'a user and a password that are percent-encoded',
  );
  demandOfUrls(
    databases.every((path) => /^\/?\d{0,7}$/.test(path)),
    'the number of a database as its path',
  );
  demandOfUrls(
    mode === 'standalone' || databases.every((path) => Number(path.slice(1)) === 0),
    `no database if REDIS_MODE is ${mode}`,
  );
  for (const [name, value] of Object.entries(settings)) {
    if (!name.startsWith('REDIS_TLS_')) continue;
    const fits = value === undefined || urls[0]?.protocol === 'rediss:';
    demand(fits, name, JSON.stringify(value), 'a REDIS_URL that starts with rediss://');
  }
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

function checkAlgorithm(settings: Settings, given: ReadonlySet<string>): void {
  const { ALGORITHM, MAX_REQUESTS } = settings;
  for (const { setting, algorithm, isAtMostMaximum } of PARAMETERS) {
    const value = settings[setting];
    const isTaken = !given.has(setting) || ALGORITHM === algorithm;
    demand(isTaken, setting, String(value), `ALGORITHM=${algorithm}, not ${ALGORITHM}`);
    const fits = !isAtMostMaximum || value <= MAX_REQUESTS;
    demand(fits, setting, String(value), `at most MAX_REQUESTS, ${MAX_REQUESTS}`);
  }
}

function checkPair(settings: Settings, prefix: 'REDIS_TLS' | 'TLS'): void {
  const [certificate, key] = [`${prefix}_CERT_FILE`, `${prefix}_KEY_FILE`] as const;
  if ((settings[certificate] === undefined) === (settings[key] === undefined)) return;
  const [missing, given] = settings[key] === undefined ? [key, certificate] : [certificate, key];
  throw new SettingsError(missing, NOTHING, `a file if ${given} is set`);
}
