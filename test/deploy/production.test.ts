import { parse } from 'yaml';

import { type KubernetesObject, theOne } from './kubernetes-object.js';
import {
  describeWithDeployTools,
  renderOverlay,
  renderWithComponents,
} from './rendered-objects.js';
import { readText } from './repository-files.js';
import { schemaErrors } from './schema-check.js';
import { settingsIn } from './settings-check.js';

interface Ingress {
  readonly from: readonly unknown[];
  readonly ports: readonly { readonly port: string }[];
}

describeWithDeployTools(['kustomize'], 'the overlay prod', () => {
  let objects: KubernetesObject[];
  beforeAll(async () => {
    objects = await renderOverlay('prod');
  });

  const service = (name: string) =>
    objects.find(({ kind, metadata }) => kind === 'Service' && metadata.name === name)!.spec as {
      ports: { targetPort: string }[];
    };

  test('needs no kind of object that a cluster may lack', () => {
    const groups = objects.map(({ apiVersion }) => apiVersion.split('/')[0]);
    expect(groups.filter((group) => group?.includes('coreos'))).toEqual([]);
  });

  test('uses TLS for clients and Redis, needs tokens, and allows no override', () => {
    expect(settingsIn(objects)).toMatchObject({
      TLS_CERT_FILE: expect.any(String) as string,
      TLS_KEY_FILE: expect.any(String) as string,
      REDIS_URL: expect.stringMatching(/^rediss:/) as string,
      AUTH_TOKENS_FILE: expect.any(String) as string,
      CONFIG_FILE: expect.any(String) as string,
      REQUESTS_CAN_SET_RATE: 'false',
      REQUESTS_CAN_MOD_QUEUE: 'false',
      REQUESTS_CAN_SET_WINDOW: 'false',
    });
  });

  test('lets only the group of the pods read Secrets', () => {
    const { securityContext, volumes } = (
      theOne(objects, 'Deployment').spec as {
        template: {
          spec: { securityContext: object; volumes: { secret?: { defaultMode: number } }[] };
        };
      }
    ).template.spec;
    const modes = volumes.flatMap(({ secret }) => (secret ? [secret.defaultMode] : []));

    expect(securityContext).toMatchObject({ fsGroup: 1000 });
    expect(modes).toEqual([0o440, 0o440, 0o440, 0o440]);
  });

  test('lets clients reach the checks, and other pods the admin port', () => {
    const { ingress } = theOne(objects, 'NetworkPolicy').spec as { ingress: readonly Ingress[] };

    expect(ingress.map(({ ports }) => ports.map(({ port }) => port))).toEqual([
      ['http'],
      ['admin'],
    ]);
    const peers = ingress.map(({ from }) => from);
    expect(peers[0]).not.toEqual(peers[1]);
    // An empty selector matches every pod.
    for (const peer of peers.flat()) {
      expect(Object.values(peer as object)).not.toContainEqual({});
    }
    expect(service('sluice').ports.map(({ targetPort }) => targetPort)).toEqual(['http']);
    expect(service('sluice-admin').ports.map(({ targetPort }) => targetPort)).toEqual(['admin']);
  });

  test('takes every secret from a file, so that a change needs no restart', () => {
    const text = JSON.stringify(theOne(objects, 'Deployment'));

    expect(settingsIn(objects)).toMatchObject({
      REDIS_USERNAME_FILE: expect.any(String) as string,
      REDIS_PASSWORD_FILE: expect.any(String) as string,
    });
    expect(text).not.toContain('secretKeyRef');
  });

  test('mounts files that may change as whole folders, and keeps the name of the rules', () => {
    const text = JSON.stringify(theOne(objects, 'Deployment'));

    expect(text).toContain('"mountPath"');
    expect(text).not.toContain('subPath');
    expect(objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`)).toContain(
      'ConfigMap sluice-rules',
    );
  });
});

describeWithDeployTools(['kustomize'], 'deploy/gateways/envoy.yaml', () => {
  test('asks the headless Service of the component grpc', async () => {
    const text = readText('deploy/gateways/envoy.yaml');
    const [, name, port] = /address: (sluice\S*), port_value: (\d+)/.exec(text)!;
    const objects = await renderWithComponents('prod', 'grpc');

    expect(objects.filter(({ kind }) => kind === 'Service')).toContainEqual(
      expect.objectContaining({
        metadata: expect.objectContaining({ name }) as unknown,
        spec: expect.objectContaining({
          clusterIP: 'None',
          ports: [{ name: 'grpc', port: Number(port), targetPort: 'grpc' }],
        }) as unknown,
      }),
    );
    for (const page of ['docs/kubernetes.md', 'docs/envoy.md']) {
      expect(readText(page)).toContain(`\`${name}:${port}\``);
    }
  });
});

describeWithDeployTools(['kustomize'], 'docs/bounds.md', () => {
  test('has the bounds of what a caller can set', async () => {
    const rows = readText('docs/bounds.md').matchAll(/^\| `([A-Z_]+)` +\| `(\w+)` +\|/gm);
    const listed = Object.fromEntries([...rows].map(([, name, value]) => [name!, value!]));

    expect(Object.keys(listed)).toHaveLength(5);
    expect(settingsIn(await renderOverlay('prod'))).toMatchObject(listed);
  });
});

describeWithDeployTools(['kustomize'], 'docs/kubernetes.md', () => {
  test('has examples that fit the overlay prod', async () => {
    const blocks = readText('docs/kubernetes.md').matchAll(/^```yaml\n(apiVersion: [^]*?)^```$/gm);
    const examples = [...blocks].map(([, text]) => parse(text!) as KubernetesObject);
    const objects = await renderOverlay('prod');
    const ingress = theOne(examples, 'Ingress');
    const service = objects.find(
      ({ kind, metadata }) => kind === 'Service' && metadata.name === 'sluice',
    )!;

    expect(examples.map(({ kind }) => kind)).toEqual([
      'Ingress',
      'HTTPRoute',
      'Certificate',
      'ExternalSecret',
    ]);
    expect(schemaErrors([ingress])).toEqual([]);
    expect(service.spec).toMatchObject({ ports: [{ name: 'http', port: 8080 }] });
    expect(JSON.stringify(ingress)).toContain('{"name":"sluice","port":{"name":"http"}}');
    expect(JSON.stringify(theOne(examples, 'HTTPRoute'))).toContain(
      '{"name":"sluice","port":8080}',
    );
    const mounted = JSON.stringify(theOne(objects, 'Deployment'));
    const secrets = [
      (theOne(examples, 'Certificate').spec as { secretName: string }).secretName,
      (theOne(examples, 'ExternalSecret').spec as { target: { name: string } }).target.name,
    ];
    for (const name of secrets) expect(mounted).toContain(`"secretName":"${name}"`);
    expect(settingsIn(objects).AUTH_TOKENS_FILE).toMatch(/\/tokens\.json$/);
  });

  test('says how each Secret of production is made', async () => {
    const text = JSON.stringify(await renderOverlay('prod-monitored'));
    const named = text.matchAll(
      /"(?:secretName|secretKeyRef|secret|credentials)":(?:"|\{[^}]*"name":")([^"]+)"/g,
    );
    const secrets = [...new Set([...named].map(([, name]) => name!))].sort();

    expect(secrets).toEqual([
      'sluice-redis',
      'sluice-redis-ca',
      'sluice-scrape-token',
      'sluice-tls',
      'sluice-tokens',
    ]);
    const page = readText('docs/kubernetes.md');
    for (const name of secrets) {
      expect(page).toMatch(new RegExp(`kubectl create secret generic ${name} `));
    }
  });
});
