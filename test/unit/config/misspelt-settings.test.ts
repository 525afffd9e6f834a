import { warnOfMisspeltSettings } from '../../../src/config/misspelt-settings.js';
import { settingsSchema } from '../../../src/config/settings.js';
import { recordLog } from '../../support/recorded-log.js';
import { words } from '../../support/words.js';

/** Variables of shells, npm, Node's image, Kubernetes, hosts of containers, and other programs. */
const UNRELATED = words(`
  PATH HOME PWD SHLVL _ TERM TZ USER LOGNAME SHELL EDITOR LANG LC_ALL HOSTNAME host port PORTS
  PORT_RANGE CI NODE_ENV NODE_VERSION NODE_OPTIONS YARN_VERSION npm_config_loglevel
  npm_package_name npm_lifecycle_event npm_config_cache npm_node_execpath INIT_CWD NODE COLOR
  KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT KUBERNETES_SERVICE_PORT_HTTPS
  KUBERNETES_PORT_443_TCP_ADDR KUBERNETES_PORT_443_TCP_PROTO SLUICE_SERVICE_HOST
  SLUICE_SERVICE_PORT SLUICE_SERVICE_PORT_HTTP SLUICE_PORT_8080_TCP_PROTO
  SLUICE_PORT_8080_TCP_PORT SLUICE_ADMIN_PORT_9090_TCP_PORT SLUICE_GRPC_SERVICE_PORT SLUICE_URL
  SLUICE_HOST SLUICE_TOKEN SLUICE_IMAGE REDIS_SERVICE_HOST REDIS_SERVICE_PORT
  REDIS_PORT_6379_TCP_ADDR REDIS_HOST REDIS_DB REDIS_USER REDIS_TLS_URL REDIS_PASS REDIS_TLS
  REDIS_VERSION POD_NAME POD_IP NAMESPACE DATABASE_URL DYNO HTTP_PROXY HTTPS_PROXY NO_PROXY
  ADMIN_HOST SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS TLS_CA_FILE OTEL_LOG_LEVEL
  OTEL_SERVICE_NAME LOG_FORMAT LOG_FILE GRPC_HOST HTTP_PORT METRICS_PORT CONFIG_PATH
  MAX_RETRIES AWS_REGION WEB_CONCURRENCY DEBUG FLY_REGION MEMORY_LIMIT
`);
/** Kubernetes gives these the address of a service. */
const LINKS = words(`
  KUBERNETES_PORT SLUICE_PORT SLUICE_PORT_8080_TCP SLUICE_ADMIN_PORT SLUICE_GRPC_PORT
  REDIS_PORT
`);

function warningsOf(environment: Readonly<Record<string, string>>): unknown[] {
  const { logger, lines } = recordLog();
  warnOfMisspeltSettings(environment, logger);
  return lines.map(({ level, msg, variable, setting }) => [level, msg, variable, setting]);
}

test.each([
  ['MAX_REQUEST', 'MAX_REQUESTS'],
  ['WINDOW_MILIS', 'WINDOW_MILLIS'],
  ['REDIS_URLS', 'REDIS_URL'],
  ['REDIS_ULR', 'REDIS_URL'],
  ['REDIS_URI', 'REDIS_URL'],
  ['REDIS_PASSWORD_FIEL', 'REDIS_PASSWORD_FILE'],
  ['max_requests', 'MAX_REQUESTS'],
  ['maxRequests', 'MAX_REQUESTS'],
  ['MAX_REQUESTS_QUEUE', 'MAX_REQUESTS_IN_QUEUE'],
  ['LOGLEVEL', 'LOG_LEVEL'],
  ['SLUICE_MAX_REQUESTS', 'MAX_REQUESTS'],
  ['SLUICE_LOG_LEVEL', 'LOG_LEVEL'],
])('%s is warned of, as %s', (variable, setting) => {
  expect(warningsOf({ [variable]: 'secret' })).toEqual([
    ['warn', `${variable} is not a setting; did you mean ${setting}?`, variable, setting],
  ]);
});

test('a setting is not warned of, nor is a variable that is empty', () => {
  for (const name of [...Object.keys(settingsSchema.shape), 'REDIS_URL_FILE']) {
    expect(warningsOf({ [name]: '1' })).toEqual([]);
  }
  expect(warningsOf({ MAX_REQUEST: '' })).toEqual([]);
});

test('variables that mean something else are not warned of', () => {
  for (const variable of UNRELATED) expect(warningsOf({ [variable]: '7' })).toEqual([]);
  for (const link of LINKS) expect(warningsOf({ [link]: 'tcp://10.0.0.1:443' })).toEqual([]);
});
