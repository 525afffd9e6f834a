import { tableRows } from '../../support/docs/tables.js';
import { comparable } from '../comparable-objects.js';
import { type KubernetesObject, theOne } from '../kubernetes-object.js';
import {
  describeWithDeployTools,
  renderChanged,
  renderWithComponents,
} from '../rendered-objects.js';
import type { Replacements } from '../replacements.js';
import { readText } from '../repository-files.js';
import { settingsErrors, settingsIn, unusedVolumes } from '../settings-check.js';

/** A row of docs/kubernetes.md on what differs from the overlay prod. */
interface Variant {
  /** The first cell of the row. */
  readonly yours: string;
  readonly change: Replacements;
  /** Settings that the change makes. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** The Secret that is not needed. */
  readonly secret?: string;
}

const KUSTOMIZATION = 'prod/kustomization.yaml';
const MODE = '- REDIS_MODE=cluster\n';
const URLS = /- REDIS_URL=(.*)\n/.exec(readText(`k8s/overlays/${KUSTOMIZATION}`))![1]!;

/** Deletes the line of a component. */
const without = (name: string): Replacements => [[`  - ../../components/${name}\n`, '']];

const VARIANTS: readonly Variant[] = [
  {
    yours: 'a single Redis',
    change: [
      [MODE, '- REDIS_MODE=standalone\n'],
      [URLS, 'rediss://redis.example.internal:6379'],
    ],
    settings: { REDIS_MODE: 'standalone' },
  },
  {
    yours: 'a Redis behind Sentinels',
    change: [
      [MODE, '- REDIS_MODE=sentinel\n      - REDIS_SENTINEL_MASTER=mymaster\n'],
      [URLS, URLS.replaceAll('redis-', 'sentinel-').replaceAll(':6379', ':26379')],
    ],
    settings: { REDIS_MODE: 'sentinel', REDIS_SENTINEL_MASTER: 'mymaster' },
  },
  {
    yours: 'Redis without TLS',
    change: [[URLS, URLS.replaceAll('rediss:', 'redis:')], ...without('redis-ca')],
    settings: { REDIS_TLS_CA_FILE: undefined },
    secret: 'sluice-redis-ca',
  },
  {
    yours: 'Redis with a certificate of a public authority',
    change: without('redis-ca'),
    settings: { REDIS_TLS_CA_FILE: undefined, REDIS_URL: URLS },
    secret: 'sluice-redis-ca',
  },
  {
    yours: 'Redis without a password',
    change: without('redis-login'),
    settings: { REDIS_USERNAME_FILE: undefined, REDIS_PASSWORD_FILE: undefined },
    secret: 'sluice-redis',
  },
  {
    yours: 'Sluice without TLS, for example behind a service mesh',
    change: without('tls'),
    settings: { TLS_CERT_FILE: undefined, TLS_KEY_FILE: undefined },
    secret: 'sluice-tls',
  },
  {
    yours: 'no tokens: every client that reaches Sluice may ask it',
    change: without('tokens'),
    settings: { AUTH_TOKENS_FILE: undefined },
    secret: 'sluice-tokens',
  },
];
/** A single Redis without TLS and password, and no TLS or tokens. */
const PLAIN: Replacements = [
  [MODE, '- REDIS_MODE=standalone\n'],
  [URLS, 'redis://redis.example.internal:6379'],
  ...['redis-ca', 'redis-login', 'tls', 'tokens'].flatMap(without),
];

/** The Secrets that the pods mount. */
function secretsIn(objects: readonly KubernetesObject[]): string[] {
  const text = JSON.stringify(theOne(objects, 'Deployment'));
  return [...text.matchAll(/"secretName":"([^"]+)"/g)].map(([, name]) => name!).sort();
}

test('docs/kubernetes.md has each of the variants, and the Secret that is not needed', () => {
  const rows = tableRows('docs/kubernetes.md', ['Yours', 'Change', 'Secret that is not needed']);

  expect(rows.map(([yours]) => yours)).toEqual(VARIANTS.map(({ yours }) => yours));
  for (const [i, { change, secret }] of VARIANTS.entries()) {
    const [, described, notNeeded] = rows[i]!;
    expect(notNeeded).toBe(secret === undefined ? '' : `\`${secret}\``);
    for (const [shipped, here] of change) {
      if (here === '') expect(described).toContain(`\`${shipped.slice(4, -1)}\``);
    }
  }
});

describeWithDeployTools(['kustomize'], 'the overlay prod for', () => {
  const ALL = ['sluice-redis', 'sluice-redis-ca', 'sluice-tls', 'sluice-tokens'];

  test.each(VARIANTS)('$yours is valid, and needs its Secrets only', async (variant) => {
    const { change, settings = {}, secret } = variant;
    const objects = await renderChanged('prod', { [KUSTOMIZATION]: change });

    expect(settingsErrors(objects)).toEqual([]);
    expect(unusedVolumes(objects)).toEqual([]);
    expect(secretsIn(objects)).toEqual(ALL.filter((name) => name !== secret));
    for (const [name, value] of Object.entries(settings)) {
      expect([name, settingsIn(objects)[name]]).toEqual([name, value]);
    }
  });

  test('gRPC has its port in the NetworkPolicy, also if the component is listed with the others', async () => {
    const last = '  - ../../components/tls\n';
    const objects = await renderChanged('prod', {
      [KUSTOMIZATION]: [[last, `${last}  - ../../components/grpc\n`]],
    });

    expect(settingsErrors(objects)).toEqual([]);
    expect(comparable(objects)).toEqual(comparable(await renderWithComponents('prod', 'grpc')));
    const { ingress } = theOne(objects, 'NetworkPolicy').spec as { ingress: readonly object[] };
    expect(ingress).toMatchObject([
      { ports: [{ port: 'http' }, { port: 'grpc' }] },
      { ports: [{ port: 'admin' }] },
    ]);
  });

  test('none of it all is valid, and needs no Secret', async () => {
    const objects = await renderChanged('prod', { [KUSTOMIZATION]: PLAIN });

    expect(settingsErrors(objects)).toEqual([]);
    expect(unusedVolumes(objects)).toEqual([]);
    expect(secretsIn(objects)).toEqual([]);
  });
});
