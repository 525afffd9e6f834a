import { SettingsError } from './settings-error.js';

const NOTHING = 'nothing';

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
  readonly UNKNOWN_KEYS: string;
  readonly CONFIG_FILE?: Text;
}

/**
 * Checks that the settings fit together.
 * @throws SettingsError that names a setting that does not fit
 */
export function checkTogether<Settings extends RelatedSettings>(settings: Settings): Settings {
  checkMode(settings);
  checkUrls(settings);
  checkPair(settings, 'REDIS_TLS_CERT_FILE', 'REDIS_TLS_KEY_FILE');
  checkPair(settings, 'TLS_CERT_FILE', 'TLS_KEY_FILE');
  checkPorts(settings);
  if (settings.UNKNOWN_KEYS === 'deny' && settings.CONFIG_FILE === undefined) {
    throw new SettingsError('UNKNOWN_KEYS', '"deny"', 'CONFIG_FILE to be set as well');
  }
  return settings;
}

function checkPorts(settings: RelatedSettings): void {
  const taken = new Map<number, string>();
  for (const name of ['PORT', 'ADMIN_PORT', 'GRPC_PORT'] as const) {
    const port = settings[name];
    // 0 is any free port.
    if (port === undefined || port === 0) continue;
    const other = taken.get(port);
    if (other !== undefined) {
      throw new SettingsError(name, String(port), `another port than ${other}`);
    }
    taken.set(port, name);
  }
}

function checkMode({
  REDIS_MODE,
  REDIS_URL,
  REDIS_SENTINEL_MASTER,
  ...rest
}: RelatedSettings): void {
  if (REDIS_MODE !== 'standalone' && !REDIS_URL) {
    throw new SettingsError(
      'REDIS_MODE',
      JSON.stringify(REDIS_MODE),
      'REDIS_URL to be set as well',
    );
  }
  if (REDIS_MODE === 'sentinel' && REDIS_SENTINEL_MASTER === undefined) {
    throw new SettingsError(
      'REDIS_SENTINEL_MASTER',
      NOTHING,
      'the name of the primary that the sentinels watch',
    );
  }
  if (REDIS_MODE === 'cluster' && (rest.REDIS_DATABASE ?? 0) !== 0) {
    throw new SettingsError(
      'REDIS_DATABASE',
      String(rest.REDIS_DATABASE),
      '0 with a cluster, which has no other',
    );
  }
}

function checkUrls(settings: RelatedSettings): void {
  const urls = (settings.REDIS_URL ?? []).map((url) => new URL(url));
  const hidden = 'a value that is not shown';
  if (settings.REDIS_MODE === 'standalone' && urls.length > 1) {
    throw new SettingsError('REDIS_URL', hidden, 'one URL if REDIS_MODE is standalone');
  }
  if (new Set(urls.map(({ protocol }) => protocol)).size > 1) {
    throw new SettingsError('REDIS_URL', hidden, 'either redis:// or rediss://, not both');
  }
  if (!urls.every(({ username, password }) => isDecodable(username) && isDecodable(password))) {
    throw new SettingsError('REDIS_URL', hidden, 'a user and a password that are percent-encoded');
  }
  if (urls.some(({ pathname }) => !/^\/?\d{0,7}$/.test(pathname))) {
    throw new SettingsError('REDIS_URL', hidden, 'the number of a database as its path');
  }
  if (
    settings.REDIS_MODE !== 'standalone' &&
    urls.some(({ pathname }) => Number(pathname.slice(1)) !== 0)
  ) {
    throw new SettingsError(
      'REDIS_URL',
      hidden,
      `no database if REDIS_MODE is ${settings.REDIS_MODE}`,
    );
  }
  const tls = [
    'REDIS_TLS_CA_FILE',
    'REDIS_TLS_CERT_FILE',
    'REDIS_TLS_KEY_FILE',
    'REDIS_TLS_SERVER_NAME',
  ] as const;
  for (const name of tls) {
    if (settings[name] !== undefined && urls[0]?.protocol !== 'rediss:') {
      throw new SettingsError(
        name,
        JSON.stringify(settings[name]),
        'a REDIS_URL that starts with rediss://',
      );
    }
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

function checkPair(
  settings: RelatedSettings,
  certificate: 'REDIS_TLS_CERT_FILE' | 'TLS_CERT_FILE',
  key: 'REDIS_TLS_KEY_FILE' | 'TLS_KEY_FILE',
): void {
  if ((settings[certificate] === undefined) === (settings[key] === undefined)) return;
  const [missing, given] = settings[key] === undefined ? [key, certificate] : [certificate, key];
  throw new SettingsError(missing, NOTHING, `a file if ${given} is set`);
}
