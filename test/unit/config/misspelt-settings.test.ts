import { warnOfMisspeltSettings } from '../../../src/config/misspelt-settings.js';
import { settingsSchema } from '../../../src/config/settings.js';
import { recordLog } from '../../support/recorded-log.js';

/** Variables of shells, npm, Node's image, Kubernetes, hosts of containers, and other programs. */
const UNRELATED = {
  ...{
    PATH: '/bin',
    HOME: '/root',
    PWD: '/',
    SHLVL: '1',
    _: '/bin/node',
    TERM: 'xterm',
    TZ: 'UTC',
  },
  ...{
    USER: 'node',
    LOGNAME: 'node',
    SHELL: '/bin/sh',
    EDITOR: 'vi',
    LANG: 'C.UTF-8',
    LC_ALL: 'C',
  },
  ...{
    HOSTNAME: 'sluice-0',
    host: 'x',
    port: '7',
    PORTS: '1',
    PORT_RANGE: '8000-9000',
    CI: 'true',
  },
  ...{
    NODE_ENV: 'production',
    NODE_VERSION: '20.0.0',
    NODE_OPTIONS: '-r x',
    YARN_VERSION: '1.0.0',
  },
  ...{ npm_config_loglevel: 'warn', npm_package_name: 'sluice', npm_lifecycle_event: 'start' },
  ...{
    npm_config_cache: '/c',
    npm_node_execpath: '/n',
    INIT_CWD: '/',
    NODE: '/bin/node',
    COLOR: '1',
  },
  ...{ KUBERNETES_SERVICE_HOST: '10.0.0.1', KUBERNETES_SERVICE_PORT: '443' },
  ...{ KUBERNETES_SERVICE_PORT_HTTPS: '443', KUBERNETES_PORT: 'tcp://10.0.0.1:443' },
  ...{ KUBERNETES_PORT_443_TCP_ADDR: '10.0.0.1', KUBERNETES_PORT_443_TCP_PROTO: 'tcp' },
  ...{
    SLUICE_SERVICE_HOST: '10.0.0.2',
    SLUICE_SERVICE_PORT: '8080',
    SLUICE_SERVICE_PORT_HTTP: '80',
  },
  ...{ SLUICE_PORT: 'tcp://10.0.0.2:8080', SLUICE_PORT_8080_TCP: 'tcp://10.0.0.2:8080' },
  ...{ SLUICE_PORT_8080_TCP_PROTO: 'tcp', SLUICE_PORT_8080_TCP_PORT: '8080' },
  ...{ SLUICE_ADMIN_PORT: 'tcp://10.0.0.3:9090', SLUICE_ADMIN_PORT_9090_TCP_PORT: '9090' },
  ...{ SLUICE_GRPC_PORT: 'tcp://10.0.0.4:50051', SLUICE_GRPC_SERVICE_PORT: '50051' },
  ...{ SLUICE_URL: 'http://sluice', SLUICE_HOST: 'sluice', SLUICE_TOKEN: 't', SLUICE_IMAGE: 'i' },
  ...{
    REDIS_SERVICE_HOST: '10.0.0.5',
    REDIS_SERVICE_PORT: '6379',
    REDIS_PORT: 'tcp://10.0.0.5:6379',
  },
  ...{ REDIS_PORT_6379_TCP_ADDR: '10.0.0.5', REDIS_HOST: 'redis', REDIS_DB: '0', REDIS_USER: 'u' },
  ...{ REDIS_TLS_URL: 'rediss://r', REDIS_PASS: 'p', REDIS_TLS: '1', REDIS_VERSION: '7.0.0' },
  ...{
    POD_NAME: 'p',
    POD_IP: '10.0.0.6',
    NAMESPACE: 'n',
    DATABASE_URL: 'postgres://d',
    DYNO: 'web.1',
  },
  ...{ HTTP_PROXY: 'http://p', HTTPS_PROXY: 'http://p', NO_PROXY: 'localhost', ADMIN_HOST: 'a' },
  ...{ SSL_CERT_FILE: '/c', SSL_CERT_DIR: '/d', NODE_EXTRA_CA_CERTS: '/c', TLS_CA_FILE: '/c' },
  ...{ OTEL_LOG_LEVEL: 'info', OTEL_SERVICE_NAME: 's', LOG_FORMAT: 'json', LOG_FILE: '/l' },
  ...{ GRPC_HOST: 'g', HTTP_PORT: '1', METRICS_PORT: '1', CONFIG_PATH: '/c', MAX_RETRIES: '3' },
  ...{ AWS_REGION: 'r', WEB_CONCURRENCY: '2', DEBUG: '*', FLY_REGION: 'f', MEMORY_LIMIT: '1' },
};

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
  expect(warningsOf(UNRELATED)).toEqual([]);
});
