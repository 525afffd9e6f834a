import type { KubernetesObject } from './kubernetes-object.js';
import { schemaErrors } from './schema-check.js';
import { settingsErrors, unusedVolumes } from './settings-check.js';

// The checks of the manifests must find faults of each kind.

const container = {
  name: 'sluice',
  image: 'sluice:0.1.0',
  ports: [{ name: 'http', containerPort: 8080 }],
  envFrom: [{ configMapRef: { name: 'sluice' } }],
  livenessProbe: { httpGet: { path: '/healthz', port: 'http' } },
  readinessProbe: { httpGet: { path: '/readyz', port: 'http' } },
  startupProbe: { httpGet: { path: '/healthz', port: 'http' } },
};

function deployment(
  changed: object = {},
  spec: object = {},
  podSpec: object = {},
): KubernetesObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'sluice' },
    spec: {
      selector: { matchLabels: { app: 'sluice' } },
      template: {
        metadata: { labels: { app: 'sluice' } },
        spec: { containers: [{ ...container, ...changed }], ...podSpec },
      },
      ...spec,
    },
  };
}

const configMap = (data: Readonly<Record<string, string>>): KubernetesObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'sluice' },
  data,
});

test('the check by schema finds an unknown field deep inside, and nothing in valid objects', () => {
  const unknown = schemaErrors([deployment({ livenessProbe: { httpGett: {} } })]);
  expect(unknown.join('\n')).toMatch(/"httpGett"' does not exist/);
  expect(schemaErrors([deployment(), configMap({ PORT: '1' })])).toEqual([]);
});

describe('the check of settings', () => {
  test('finds nothing wrong with valid objects', () => {
    expect(settingsErrors([deployment(), configMap({ MAX_REQUESTS: '5' })])).toEqual([]);
  });

  test.each<[string, KubernetesObject, Record<string, string>, RegExp]>([
    ['a misspelt setting', deployment(), { MAX_REQUEST: '5' }, /^MAX_REQUEST is no setting$/],
    [
      'a misspelt setting in the Deployment',
      deployment({ env: [{ name: 'REDIS_PASWORD' }] }),
      {},
      /^REDIS_PASWORD is no setting$/,
    ],
    ['an invalid value', deployment(), { MAX_REQUESTS: 'many' }, /MAX_REQUESTS/],
    [
      'two that do not go together',
      deployment(),
      { REDIS_MODE: 'sentinel', REDIS_URL: 'redis://a' },
      /REDIS_SENTINEL_MASTER/,
    ],
    [
      'a file that is not mounted',
      deployment({ volumeMounts: [{ name: 'a', mountPath: '/etc/other' }] }),
      { AUTH_TOKENS_FILE: '/etc/sluice/tokens.json' },
      /nothing is mounted at \/etc\/sluice\/tokens\.json/,
    ],
    [
      'a key of a Secret that is not mounted',
      deployment(
        { volumeMounts: [{ name: 'redis', mountPath: '/redis' }] },
        {},
        { volumes: [{ name: 'redis', secret: { items: [{ key: 'a', path: 'user' }] } }] },
      ),
      { REDIS_PASSWORD_FILE: '/redis/password' },
      /^REDIS_PASSWORD_FILE: nothing is mounted at \/redis\/password$/,
    ],
    [
      'a secret that comes in two ways',
      deployment({
        env: [{ name: 'REDIS_PASSWORD' }],
        volumeMounts: [{ name: 'redis', mountPath: '/redis' }],
      }),
      { REDIS_PASSWORD_FILE: '/redis/password' },
      /nothing if REDIS_PASSWORD is set/,
    ],
    [
      'probes that do not speak TLS',
      deployment({ volumeMounts: [{ name: 'a', mountPath: '/tls' }] }),
      { TLS_CERT_FILE: '/tls/tls.crt', TLS_KEY_FILE: '/tls/tls.key' },
      /livenessProbe must speak HTTPS/,
    ],
    [
      'a port that is not the setting',
      deployment(),
      { PORT: '8081' },
      /the ports must be \{"http":8081\}/,
    ],
    [
      'probes on the port of the clients',
      deployment({
        ports: [
          { name: 'http', containerPort: 8080 },
          { name: 'admin', containerPort: 8081 },
        ],
      }),
      { ADMIN_PORT: '8081' },
      /^livenessProbe must ask the inner port$/m,
    ],
  ])('finds %s', (_what, object, settings, message) => {
    expect(settingsErrors([object, configMap(settings)]).join('\n')).toMatch(message);
  });

  test.each([
    ['invalid rules', { 'rules.yaml': 'keys: 5' }, /^CONFIG_FILE: .*keys/],
    ['rules under another name', { 'other.yaml': 'keys: []' }, /^CONFIG_FILE: .* no such file/],
  ])('finds %s', (_what, data, message) => {
    const withRules = deployment(
      { volumeMounts: [{ name: 'rules', mountPath: '/rules' }] },
      {},
      { volumes: [{ name: 'rules', configMap: { name: 'rules' } }] },
    );
    const rules = { ...configMap(data), metadata: { name: 'rules' } };
    const settings = configMap({ CONFIG_FILE: '/rules/rules.yaml' });
    expect(settingsErrors([withRules, settings, rules]).join('\n')).toMatch(message);
  });
});

test('the check of volumes finds one in which no setting names a file', () => {
  const volumes = ['tokens', 'redis-ca'].map((name) => ({ name, secret: { secretName: name } }));
  const volumeMounts = volumes.map(({ name }) => ({ name, mountPath: `/${name}` }));
  const settings = configMap({ AUTH_TOKENS_FILE: '/tokens/tokens.json' });

  expect(unusedVolumes([deployment({ volumeMounts }, {}, { volumes }), settings])).toEqual([
    'redis-ca',
  ]);
});
