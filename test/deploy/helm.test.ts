import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { parse } from 'yaml';

import { useTemporaryFolder } from '../support/temporary-folder.js';
import { clusterWith } from './cluster-with.js';
import { comparable } from './comparable-objects.js';
import { readText } from './repository-files.js';
import { type KubernetesObject, theOne } from './kubernetes-object.js';
import {
  CHART,
  describeWithDeployTools,
  helm,
  renderChart,
  renderOverlay,
  renderWithComponents,
  templateChart,
} from './rendered-objects.js';
import { schemaErrors } from './schema-check.js';
import { settingsErrors, settingsIn } from './settings-check.js';

interface Deployment {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly replicas?: number;
    readonly selector: { readonly matchLabels: Labels };
    readonly template: {
      readonly metadata: { readonly labels: Labels; readonly annotations: Labels };
      readonly spec: {
        readonly securityContext: unknown;
        readonly containers: readonly [{ readonly ports: unknown }];
      };
    };
  };
}
type Labels = Readonly<Record<string, string>>;

const LIKE_DEV = {
  settings: { REDIS_URL: 'redis://sluice-redis:6379', LOG_LEVEL: 'debug' },
  redis: { secretName: 'sluice-redis' },
  autoscaling: { enabled: false },
  replicas: 3,
};

/** The values on the chart's page that match the overlay prod. */
const LIKE_PROD = valuesOfPage();

const LIKE_PROD_MONITORED = {
  ...LIKE_PROD,
  monitoring: {
    enabled: true,
    scrapeToken: { secretName: 'sluice-scrape-token' },
    tlsConfig: { serverName: 'sluice', ca: { secret: { name: 'sluice-tls', key: 'ca.crt' } } },
  },
};

const LIKE_PROD_WITH_GRPC = {
  ...LIKE_PROD,
  settings: { ...LIKE_PROD.settings, GRPC_PORT: '8082' },
};

const FROM_SECRET = {
  name: 'REDIS_SENTINEL_PASSWORD',
  valueFrom: { secretKeyRef: { name: 'our-sentinels', key: 'password' } },
};

const DIGEST = `sha256:${'0123456789abcdef'.repeat(4)}`;

/** Every value that adds something, each different from its default. */
const EVERYTHING = {
  fullnameOverride: 'limits',
  image: {
    repository: 'registry.example/sluice',
    tag: '1.2.3',
    digest: DIGEST,
    pullPolicy: 'Always',
  },
  imagePullSecrets: [{ name: 'registry' }],
  settings: {
    PORT: '9000',
    ADMIN_PORT: '9001',
    GRPC_PORT: '9002',
    REDIS_URL: 'rediss://redis.example.internal:6379',
    REDIS_TLS_CA_FILE: '/etc/sluice/redis-ca/ca.crt',
  },
  rules: { configMap: 'our-rules', key: 'rules.json' },
  tls: { secretName: 'our-tls' },
  tokens: { secretName: 'our-tokens' },
  redis: { secretName: 'our-redis' },
  mountedSecrets: [{ name: 'redis-ca', secretName: 'our-ca', mountPath: '/etc/sluice/redis-ca' }],
  mountedConfigMaps: [{ name: 'more', configMapName: 'our-files', mountPath: '/etc/sluice/more' }],
  extraEnv: [FROM_SECRET],
  priorityClassName: 'urgent',
  podSecurityContext: { runAsUser: null, runAsGroup: null, fsGroup: 7 },
  securityContext: { runAsNonRoot: true },
  lifecycle: { preStop: { exec: { command: ['true'] } } },
  dnsConfig: { options: [{ name: 'ndots', value: '1' }] },
  autoscaling: {
    metrics: [
      {
        type: 'Pods',
        pods: {
          metric: { name: 'ratelimit_waiting' },
          target: { type: 'AverageValue', averageValue: '5k' },
        },
      },
    ],
  },
  minReadySeconds: 7,
  revisionHistoryLimit: 3,
  initContainers: [{ name: 'before', image: 'registry.example/before:1' }],
  test: { key: 'tenant-test', secretName: 'test-token', secretKey: 'of-it' },
  extraContainers: [{ name: 'beside', image: 'registry.example/beside:1' }],
  extraVolumes: [{ name: 'extra', emptyDir: {} }],
  extraVolumeMounts: [{ name: 'extra', mountPath: '/extra' }],
  podDisruptionBudget: { maxUnavailable: '25%' },
  networkPolicy: {
    ingressFrom: [],
    adminFrom: [{ podSelector: { matchLabels: { app: 'prometheus' } } }],
    egressTo: [{ ipBlock: { cidr: '10.0.0.0/8' } }],
  },
  service: { type: 'LoadBalancer', port: 443, annotations: { of: 'the service' } },
  serviceAccount: { name: 'limits-account', annotations: { of: 'the account' } },
  monitoring: {
    enabled: true,
    labels: { release: 'prometheus' },
    scrapeToken: { secretName: 'scrape', key: 'of-it' },
    tlsConfig: { serverName: 'sluice.example' },
    dashboard: {
      enabled: true,
      labels: { grafana_dashboard: 'of-ours' },
      annotations: { grafana_folder: 'Limits' },
    },
  },
  nodeSelector: { 'kubernetes.io/arch': 'arm64' },
  tolerations: [{ key: 'spot', operator: 'Exists', effect: 'NoSchedule' }],
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: 'gpu', operator: 'DoesNotExist' }] }],
      },
    },
  },
  podAnnotations: { of: 'the pods', 'checksum/config': 'fixed' },
  podLabels: { team: 'limits', 'app.kubernetes.io/name': 'another' },
};

/** Mode 0440. */
const GROUP_READS = 288;
/** Only these two keys of the Secret. */
const LOGIN = {
  secretName: 'our-redis',
  defaultMode: GROUP_READS,
  items: ['username', 'password'].map((key) => ({ key, path: key })),
};

const deployment = (objects: readonly KubernetesObject[]) =>
  theOne(objects, 'Deployment') as unknown as Deployment;
const podTemplate = async (values: object) => deployment(await renderChart(values)).spec.template;
const kinds = (objects: readonly KubernetesObject[]) => objects.map(({ kind }) => kind).sort();

describeWithDeployTools(['helm', 'kustomize'], 'the objects of the chart', () => {
  test('match the overlay dev, except its Redis', async () => {
    const inOverlay = Object.entries(comparable(await renderOverlay('dev')));
    const withoutRedis = inOverlay.filter(([name]) => !name.endsWith(' sluice-redis'));

    expect(withoutRedis.length).toBeLessThan(inOverlay.length);
    expect(comparable(await renderChart(LIKE_DEV))).toEqual(Object.fromEntries(withoutRedis));
  });

  test.each([
    ["prod with the values of the chart's page", LIKE_PROD, () => renderOverlay('prod')],
    ['prod-monitored', LIKE_PROD_MONITORED, () => renderOverlay('prod-monitored')],
    ['prod with gRPC', LIKE_PROD_WITH_GRPC, () => renderWithComponents('prod', 'grpc')],
  ])('match the overlay %s', async (_, values, render) => {
    expect(comparable(await renderChart(values))).toEqual(comparable(await render()));
  });
});

describeWithDeployTools(['helm', 'kustomize'], 'the chart', () => {
  const folder = useTemporaryFolder();

  test('passes helm lint', async () => {
    const { code, stdout } = await helm(['lint', '--strict', CHART]);

    expect(stdout.match(/\[(?:WARNING|ERROR)\].*/g)).toBeNull();
    expect(code).toBe(0);
  });

  test.each([
    ['its defaults', {}],
    ['every value that adds something', EVERYTHING],
  ])('makes valid objects and settings with %s', async (_, values) => {
    const objects = await renderChart(values);

    expect(schemaErrors(objects)).toEqual([]);
    expect(settingsErrors(objects)).toEqual([]);
  });

  test('uses every value', async () => {
    const made = comparable(await renderChart(EVERYTHING, { withTests: true }));
    const { metadata, spec } = (made['Deployment limits'] as Deployment).spec.template;

    expect(metadata).toEqual({
      // The selector's labels can not be replaced.
      labels: {
        'app.kubernetes.io/name': 'sluice',
        'app.kubernetes.io/component': 'limiter',
        'app.kubernetes.io/version': '0.1.0',
        team: 'limits',
      },
      annotations: { of: 'the pods' },
    });
    // The user of the image is left to the cluster.
    expect(spec.securityContext).toEqual({
      runAsNonRoot: true,
      fsGroup: 7,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    expect(spec).toMatchObject({
      serviceAccountName: 'limits-account',
      imagePullSecrets: EVERYTHING.imagePullSecrets,
      nodeSelector: EVERYTHING.nodeSelector,
      tolerations: EVERYTHING.tolerations,
      affinity: EVERYTHING.affinity,
      priorityClassName: 'urgent',
      dnsConfig: EVERYTHING.dnsConfig,
      initContainers: EVERYTHING.initContainers,
      volumes: [
        { name: 'rules', configMap: { name: 'our-rules' } },
        { name: 'tls', secret: { secretName: 'our-tls', defaultMode: GROUP_READS } },
        { name: 'tokens', secret: { secretName: 'our-tokens', defaultMode: GROUP_READS } },
        { name: 'redis', secret: LOGIN },
        { name: 'redis-ca', secret: { secretName: 'our-ca', defaultMode: GROUP_READS } },
        { name: 'more', configMap: { name: 'our-files' } },
        { name: 'extra', emptyDir: {} },
      ],
      containers: [
        {
          image: `registry.example/sluice:1.2.3@${DIGEST}`,
          imagePullPolicy: 'Always',
          ports: [
            { name: 'http', containerPort: 9000 },
            { name: 'admin', containerPort: 9001 },
            { name: 'grpc', containerPort: 9002 },
          ],
          env: [FROM_SECRET],
          securityContext: {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
            runAsNonRoot: true,
          },
          lifecycle: EVERYTHING.lifecycle,
          volumeMounts: expect.arrayContaining([
            { name: 'more', mountPath: '/etc/sluice/more', readOnly: true },
            { name: 'extra', mountPath: '/extra' },
          ]) as unknown,
        },
        EVERYTHING.extraContainers[0],
      ],
    });
    expect(made).toMatchObject({
      'Deployment limits': { spec: { minReadySeconds: 7, revisionHistoryLimit: 3 } },
      'Pod limits-test': {
        spec: {
          nodeSelector: EVERYTHING.nodeSelector,
          containers: [
            {
              image: `registry.example/sluice:1.2.3@${DIGEST}`,
              env: [
                { name: 'SLUICE_URL', value: 'https://limits.x.svc:443' },
                { name: 'SLUICE_KEY', value: 'tenant-test' },
                {
                  name: 'SLUICE_TOKEN',
                  valueFrom: { secretKeyRef: { name: 'test-token', key: 'of-it' } },
                },
              ],
            },
          ],
        },
      },
      'HorizontalPodAutoscaler limits': {
        spec: { metrics: [{ type: 'Resource' }, ...EVERYTHING.autoscaling.metrics] },
      },
      'ServiceAccount limits-account': { metadata: { annotations: { of: 'the account' } } },
      'Service limits': {
        metadata: { annotations: { of: 'the service' } },
        spec: { type: 'LoadBalancer', ports: [{ name: 'http', port: 443, targetPort: 'http' }] },
      },
      // The admin port is not on the load balancer.
      'Service limits-admin': {
        spec: { ports: [{ name: 'admin', port: 9001, targetPort: 'admin' }] },
      },
      'Service limits-grpc': {
        spec: { clusterIP: 'None', ports: [{ name: 'grpc', port: 9002, targetPort: 'grpc' }] },
      },
      'NetworkPolicy limits': {
        spec: {
          ingress: [
            { from: [], ports: [{ port: 'http' }, { port: 'grpc' }] },
            { from: EVERYTHING.networkPolicy.adminFrom, ports: [{ port: 'admin' }] },
          ],
          egress: expect.arrayContaining([
            expect.objectContaining({ to: EVERYTHING.networkPolicy.egressTo }),
          ]) as unknown,
        },
      },
      'ConfigMap limits-dashboard': {
        metadata: {
          labels: { grafana_dashboard: 'of-ours' },
          annotations: { grafana_folder: 'Limits' },
        },
      },
      'PodDisruptionBudget limits': { spec: { maxUnavailable: '25%' } },
      'ServiceMonitor limits': {
        metadata: { labels: { release: 'prometheus' } },
        spec: {
          endpoints: [
            {
              port: 'admin',
              path: '/metrics',
              interval: '15s',
              scheme: 'https',
              tlsConfig: EVERYTHING.monitoring.tlsConfig,
              authorization: { credentials: { name: 'scrape', key: 'of-it' } },
            },
          ],
        },
      },
    });
    expect(made['Service limits-admin']).not.toHaveProperty('spec.type');
  });

  test("has the dashboard for Grafana's sidecar", async () => {
    const objects = await renderChart({ monitoring: { dashboard: { enabled: true } } });
    const { metadata, data } = objects.find(({ metadata: { name } }) =>
      name.endsWith('-dashboard'),
    )!;

    expect(kinds(objects)).not.toContain('ServiceMonitor');
    expect(metadata).toMatchObject({
      name: 'sluice-dashboard',
      labels: { grafana_dashboard: '1', 'app.kubernetes.io/name': 'sluice' },
    });
    expect(data).toEqual({
      'sluice.json': readText('deploy/helm/sluice/files/grafana-dashboard.json'),
    });
  });

  test('leaves out objects that are switched off', async () => {
    const objects = await renderChart({
      autoscaling: { enabled: false },
      replicas: 1,
      podDisruptionBudget: { enabled: false },
      networkPolicy: { enabled: false },
      serviceAccount: { create: false },
      topologySpread: { enabled: false },
    });

    expect(kinds(objects)).toEqual(['ConfigMap', 'Deployment', 'Service']);
    const { replicas, template } = deployment(objects).spec;
    expect(replicas).toBe(1);
    expect(template.spec).toMatchObject({ serviceAccountName: 'default' });
    expect(template.spec).not.toHaveProperty('topologySpreadConstraints');
    expect(template.spec).not.toHaveProperty('volumes');
    expect(template.spec.containers[0]).not.toHaveProperty('volumeMounts');
  });

  test('names its objects after the release, and selects only its pods', async () => {
    const objects = await renderChart({ monitoring: { enabled: true } }, { release: '42' });
    const own = {
      'app.kubernetes.io/name': 'sluice',
      'app.kubernetes.io/instance': '42',
      'app.kubernetes.io/component': 'limiter',
    };

    expect([...new Set(objects.map(({ metadata }) => metadata.name))]).toEqual(['42-sluice']);
    expect(deployment(objects).spec.template.metadata.labels).toMatchObject(own);
    const selectors = objects.flatMap((object) => selectorsIn(object));
    expect(selectors).toEqual(Array.from({ length: 7 }, () => own));
  });

  test('scales by the metrics on docs/kubernetes.md', async () => {
    const [, text = ''] = /^```yaml\n(- type: Pods\n[^]*?)^```$/m.exec(
      readText('docs/kubernetes.md'),
    )!;
    const metrics = parse(text) as readonly unknown[];
    const objects = await renderChart({ autoscaling: { metrics } });

    expect(metrics).toHaveLength(2);
    expect(schemaErrors(objects)).toEqual([]);
    expect(theOne(objects, 'HorizontalPodAutoscaler').spec).toMatchObject({
      metrics: [{ type: 'Resource' }, ...metrics],
    });
  });

  test('keeps its selectors when it is upgraded', async () => {
    const version = ['--version', '9.8.7', '--app-version', '9.8.7', '--destination', folder];
    expect(await helm(['package', CHART, ...version])).toMatchObject({ code: 0 });
    const before = await renderChart();
    const after = await renderChart(
      { podLabels: { team: 'limits' } },
      { chart: join(folder, 'sluice-9.8.7.tgz') },
    );

    expect(deployment(after).spec.template.metadata.labels).toMatchObject({
      'app.kubernetes.io/version': '9.8.7',
    });
    expect(after.flatMap(selectorsIn)).toEqual(before.flatMap(selectorsIn));
  });

  test('rolls the pods when a setting changes', async () => {
    const before = await podTemplate({});

    expect(await podTemplate({ replicas: 4 })).toEqual(before);
    expect(await podTemplate({ settings: { WINDOW_MILLIS: '2000' } })).not.toEqual(before);
    expect(await podTemplate({ tokens: { secretName: 'tokens' } })).not.toEqual(before);
    // The user's annotations do not replace the hash.
    const fixed = { podAnnotations: { 'checksum/config': 'fixed' } };
    expect(await podTemplate(fixed)).toEqual(before);
  });

  test('leaves the pods alone when rules change', async () => {
    const rules = (text: string) => ({ rules: { text } });
    const before = await podTemplate(rules('keys: []'));

    expect(await podTemplate(rules('keys: [{ key_pattern: a }]'))).toEqual(before);
  });

  test('prefers an explicit setting to a derived one', async () => {
    const objects = await renderChart({
      settings: { AUTH_TOKENS_FILE: '/etc/sluice/tokens/ours.json' },
      tokens: { secretName: 'tokens' },
    });

    expect(settingsIn(objects).AUTH_TOKENS_FILE).toBe('/etc/sluice/tokens/ours.json');
  });

  test('lets no pod reach the admin port if adminFrom is empty', async () => {
    const objects = await renderChart({
      settings: { ADMIN_PORT: '9001' },
      networkPolicy: { adminFrom: [] },
    });

    const { ingress } = theOne(objects, 'NetworkPolicy').spec as { ingress: unknown };
    expect(ingress).toEqual([
      { from: [{ namespaceSelector: {} }], ports: [{ protocol: 'TCP', port: 'http' }] },
    ]);
  });

  test.each([
    ['no Deployment', undefined, 3],
    ['more replicas', 7, 7],
    ['no replicas', 0, 0],
  ])('sets the right number of replicas if the cluster has %s', async (_, replicas, expected) => {
    const cluster = await clusterWith(replicas);
    const objects = await renderChart({}, { cluster: cluster.url });
    cluster.close();

    expect(deployment(objects).spec.replicas).toBe(expected);
  });

  test('leaves out settings that are null', async () => {
    const objects = await renderChart({ settings: { MAX_REQUESTS: null } });

    expect(theOne(objects, 'ConfigMap').data).toEqual({
      WINDOW_MILLIS: '1000',
      MAX_REQUESTS_IN_QUEUE: '400',
      MAX_REQUESTS_CEILING: '100000',
      MAX_REQUESTS_IN_QUEUE_CEILING: '10000',
      WINDOW_MILLIS_CEILING: '86400000',
      MAX_HOLD_MILLIS: '300000',
      MAX_CONNECTIONS: '10000',
      SHUTDOWN_DELAY_MILLIS: '5000',
      SHUTDOWN_GRACE_MILLIS: '10000',
    });
  });

  test.each([
    ['a grace', { settings: { SHUTDOWN_GRACE_MILLIS: '20001' } }],
    ['a delay', { settings: { SHUTDOWN_DELAY_MILLIS: '15001' } }],
    ['a termination', { terminationGracePeriodSeconds: 19 }],
    ['a sleep', { lifecycle: { preStop: { sleep: { seconds: 11 } } } }],
    ['a command that sleeps', { lifecycle: { preStop: { exec: { command: ['sleep', '11'] } } } }],
    [
      'a script that sleeps',
      { lifecycle: { preStop: { exec: { command: ['sh', '-c', 'sleep 11; true'] } } } },
    ],
  ])('rejects %s with which pods would be killed', async (_, values) => {
    const { code, stderr } = await templateChart(values);

    expect(code).toBe(1);
    expect(stderr).toContain('terminationGracePeriodSeconds must be 5 s longer than');
  });

  test('takes a sleep before the stop that leaves a pod enough time', async () => {
    const lifecycle = { preStop: { sleep: { seconds: 10 } } };

    expect(await podTemplate({ lifecycle })).toMatchObject({
      spec: { containers: [{ lifecycle }] },
    });
  });

  const volume = { name: 'a', secretName: 'a', mountPath: '/a' };
  test.each([
    [
      { settings: { REDIS_MODE: 'sentinel', REDIS_URL: 'redis://a' } },
      'settings.REDIS_MODE is sentinel, so settings.REDIS_SENTINEL_MASTER must be set',
    ],
    [
      { settings: { PORT: '9000', ADMIN_PORT: '9000' } },
      'settings.PORT and settings.ADMIN_PORT are both 9000',
    ],
    [{ settings: { GRPC_PORT: '8080' } }, 'settings.PORT and settings.GRPC_PORT are both 8080'],
    [
      { settings: { ADMIN_PORT: '1', GRPC_PORT: '1' } },
      'settings.ADMIN_PORT and settings.GRPC_PORT are both 1',
    ],
    [
      { rules: { text: 'keys: []', configMap: 'ours' } },
      'rules.text and rules.configMap exclude each other',
    ],
    [{ settings: { REDIS_MODE: 'cluster' } }, 'settings.REDIS_URL must be set'],
    [{ settings: { UNKNOWN_KEYS: 'deny' } }, 'rules.text or rules.configMap must be set'],
    [{ autoscaling: { minReplicas: 11 } }, 'autoscaling.minReplicas must be at most'],
    [
      { mountedSecrets: [volume], extraVolumes: [{ name: 'a', emptyDir: {} }] },
      'extraVolumes: another volume has the name a',
    ],
    [
      { mountedSecrets: [volume, { ...volume, name: 'b' }] },
      'mountedSecrets: another volume is mounted at /a',
    ],
  ])('rejects %j, with which pods would not start', async (values, message) => {
    const { code, stderr } = await templateChart(values);

    expect(code).toBe(1);
    expect(stderr).toContain(message);
  });

  test('takes settings that others need from extraEnv', async () => {
    const objects = await renderChart({
      settings: { REDIS_MODE: 'sentinel', REDIS_URL: 'redis://a' },
      extraEnv: [{ name: 'REDIS_SENTINEL_MASTER', value: 'mymaster' }],
    });

    expect(settingsErrors(objects)).toEqual([]);
  });

  test('runs an image by its digest alone, if no tag is given', async () => {
    const { spec } = await podTemplate({ image: { digest: DIGEST } });

    expect(spec.containers).toMatchObject([{ image: `sluice@${DIGEST}` }]);
  });

  describe('the notes', () => {
    // Helm shows its notes only with a cluster, so this test makes an object of them.
    const notesWith = async (values: object): Promise<string> => {
      const chart = join(folder, 'sluice');
      rmSync(chart, { recursive: true, force: true });
      cpSync(CHART, chart, { recursive: true });
      const notes = readFileSync(join(chart, 'templates/NOTES.txt'), 'utf8');
      rmSync(join(chart, 'templates'), { recursive: true });
      cpSync(join(CHART, 'templates/_helpers.tpl'), join(chart, 'templates/_helpers.tpl'));
      writeFileSync(
        join(chart, 'templates/notes.yaml'),
        `kind: Notes\nmetadata: { name: notes }\ntext: {{ include "notes" . | quote }}\n` +
          `{{- define "notes" }}${notes}{{ end }}`,
      );
      return theOne(await renderChart(values, { chart }), 'Notes').text as string;
    };

    test('warn of replicas without a Redis, or with one that is shut out', async () => {
      expect(await notesWith({})).toContain('WARNING: settings.REDIS_URL is not set');
      expect(await notesWith(LIKE_PROD)).not.toContain('WARNING');
      expect(await notesWith({ settings: { REDIS_URL_FILE: '/a' } })).not.toContain('WARNING');
      const shutOut = (port: string) =>
        `WARNING: the NetworkPolicy lets no pod reach port ${port} of`;
      const REDIS_URL = 'redis://user:a:6379@a:6380/0,redis://[::1]:6379,redis://b,redis://c:7000';
      expect(await notesWith({ settings: { REDIS_URL } })).toContain(shutOut('6380, 7000'));
      expect(
        await notesWith({ settings: { REDIS_URL }, networkPolicy: { egressPorts: [6380, 7000] } }),
      ).toContain(shutOut('6379'));
      expect(
        await notesWith({ settings: { REDIS_URL }, networkPolicy: { enabled: false } }),
      ).not.toContain('WARNING');
    });

    test('have a command with a token if there are tokens, for a key that is allowed', async () => {
      const header = '--header "Authorization: Bearer $TOKEN" ';
      const curl = (scheme: string, options: string, key: string) =>
        `curl ${options}--request POST ${scheme}://localhost:8080/rate/${key}\n`;

      expect(await notesWith({})).toContain(curl('http', '', 'helm-test'));
      expect(await notesWith(LIKE_PROD)).toContain(
        curl('https', `--insecure ${header}`, 'tenant-test'),
      );
      expect(await notesWith(LIKE_PROD)).toContain('Secret sluice-tokens, with the scope');
    });
  });
});

/** The values that the chart's README shows. */
function valuesOfPage(): { readonly settings: Readonly<Record<string, string>> } {
  const [, values = ''] = /^```yaml\n([^]*?)^```$/m.exec(readText('deploy/helm/sluice/README.md'))!;
  return parse(values) as ReturnType<typeof valuesOfPage>;
}

/** Every set of labels that an object selects other objects by. */
function selectorsIn(value: unknown): unknown[] {
  if (value === null || typeof value !== 'object') return [];
  return Object.entries(value).flatMap(([name, field]) => {
    // A Service's selector is the labels themselves.
    const isOfService = name === 'selector' && !('matchLabels' in (field as object));
    return name === 'matchLabels' || isOfService ? [field as unknown] : selectorsIn(field);
  });
}

describeWithDeployTools(['helm', 'helm4'], 'Helm 4', () => {
  test.each([
    ['the default values', {}],
    ['production', LIKE_PROD_MONITORED],
    ['gRPC', LIKE_PROD_WITH_GRPC],
  ])('makes the objects that Helm 3 makes, with %s', async (_what, values) => {
    const options = { withTests: true };
    const made = await renderChart(values, { ...options, program: 'helm4' });

    expect(made.length).toBeGreaterThan(5);
    expect(made).toEqual(await renderChart(values, options));
  });
});
