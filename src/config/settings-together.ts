import type { AlgorithmName } from '../limiter/algorithms.js';
import { SettingsError } from './settings-error.js';

const NOTHING = 'nothing';
const TLS_SETTINGS = [
  'REDIS_TLS_CA_FILE',
  'REDIS_TLS_CERT_FILE',
  'REDIS_TLS_KEY_FILE',
  'REDIS_TLS_SERVER_NAME',
] as const;
/** The settings that only one algorithm has. */
const ALGORITHM_SETTINGS = [
  ['WINDOW_STEPS', 'sliding_window'],
  ['BURST', 'token_bucket'],
] as const;

type Text = string | undefined;
type Port = number | undefined;

/** The settings whose values depend on one another. */
interface RelatedSettings {
  readonly PORT: Port;
  readonly ADMIN_PORT?: Port;
  readonly GRPC_PORT?: Port;
  readonly REDIS_MODE: 'standalone' | 'sentinel' | 'cluster';
  readonly REDIS_URL?: readonly string[] | undefined;
  readonly REDIS_SENTINEL_MASTER?: Text;
  readonly REDIS_DATABASE?: number | undefined;
  readonly REDIS_TLS_CA_FILE?: Text;
  readonly REDIS_TLS_CERT_FILE?: Text;
  readonly REDIS_TLS_KEY_FILE?: Text;
  readonly REDIS_TLS_SERVER_NAME?: Text;
  readonly TLS_CERT_FILE?: Text;
  readonly TLS_KEY_FILE?: Text;
  readonly ALGORITHM: AlgorithmName;
  readonly MAX_REQUESTS: number;
  readonly WINDOW_STEPS: number;
  readonly BURST: number;
  readonly UNKNOWN_KEYS: string;
  readonly CONFIG_FILE?: Text;
}

/**
 * Checks that the settings fit together.
 * @param given the names of the settings that are no defaults
 * @throws SettingsError that names a setting that does not fit
 */
export function checkTogether<Settings extends RelatedSettings>(
  settings: Settings,
  given: ReadonlySet<string>,
): Settings {
  checkMode(settings);
  checkUrls(settings);
  checkPair(settings, 'REDIS_TLS_CERT_FILE', 'REDIS_TLS_KEY_FILE');
  checkPair(settings, 'TLS_CERT_FILE', 'TLS_KEY_FILE');
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

function checkPorts(settings: RelatedSettings): void {
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

function checkMode(settings: RelatedSettings): void {
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

function checkUrls(settings: RelatedSettings): void {
  const { REDIS_MODE: mode, REDIS_URL = [] } = settings;
  const urls = REDIS_URL.map((url) => new URL(url));
  const databases = urls.map(({ pathname }) => pathname);
  const protocols = new Set(urls.map(({ protocol }) => protocol));
  const demandOfUrls = (fits: boolean, takes: string): void => {
    demand(fits, 'REDIS_URL', 'a value that is not shown', takes);
  };
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
  for (const name of TLS_SETTINGS) {
    const value = settings[name];
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

function checkAlgorithm(settings: RelatedSettings, given: ReadonlySet<string>): void {
  for (const [name, algorithm] of ALGORITHM_SETTINGS) {
    const fits = !given.has(name) || settings.ALGORITHM === algorithm;
    demand(fits, name, String(settings[name]), `ALGORITHM=${algorithm}, not ${settings.ALGORITHM}`);
  }
  const { BURST, MAX_REQUESTS } = settings;
  demand(BURST <= MAX_REQUESTS, 'BURST', String(BURST), `at most MAX_REQUESTS, ${MAX_REQUESTS}`);
}

function checkPair(
  settings: RelatedSettings,
  certificate: 'REDIS_TLS_CERT_FILE' | 'TLS_CERT_FILE',
  key: 'REDIS_TLS_KEY_FILE' | 'TLS_KEY_FILE',
): void {
  if ((settings[certificate] === undefined) === (settings[key] === undefined)) return;
  const [missing, given] = settings[key] === undefined ? [key, certificate] : [certificate, key];
  throw new SettingsError(missing, NOTHING, `a file if ${given} is set`);
}
