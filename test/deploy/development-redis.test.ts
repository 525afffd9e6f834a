import { type KubernetesObject, theOne } from './kubernetes-object.js';
import { describeWithDeployTools, renderOverlay } from './rendered-objects.js';
import { readText } from './repository-files.js';

interface Variable {
  readonly name: string;
  readonly valueFrom: { readonly secretKeyRef: { readonly name: string; readonly key: string } };
}

interface Workload {
  readonly spec: {
    readonly template: {
      readonly metadata: { readonly labels: object };
      readonly spec: {
        readonly containers: readonly [
          { readonly args: readonly string[]; readonly env: readonly Variable[] },
        ];
      };
    };
  };
}

describeWithDeployTools(['kustomize'], 'the Redis of the overlay dev', () => {
  let objects: KubernetesObject[];
  beforeAll(async () => {
    objects = await renderOverlay('dev');
  });

  const template = (kind: 'StatefulSet' | 'Deployment') =>
    (theOne(objects, kind) as unknown as Workload).spec.template;
  const container = (kind: 'StatefulSet' | 'Deployment') => template(kind).spec.containers[0];
  const password = (kind: 'StatefulSet' | 'Deployment', variable: string) =>
    container(kind).env.find(({ name }) => name === variable)?.valueFrom.secretKeyRef;

  test('is asked by a user of its own, with a password, and by nobody without one', () => {
    const { args } = container('StatefulSet');

    expect(args.join(' ')).toContain('--requirepass $(REDISCLI_AUTH) --user sluice on ');
    expect(args).toContain('>$(SLUICE_PASSWORD)');
    expect(password('Deployment', 'REDIS_PASSWORD')).toMatchObject(
      password('StatefulSet', 'SLUICE_PASSWORD')!,
    );
    // Who has the replicas' password is not the default user.
    expect(password('StatefulSet', 'REDISCLI_AUTH')!.key).not.toBe(
      password('StatefulSet', 'SLUICE_PASSWORD')!.key,
    );
  });

  test('lets that user do what its rules say', () => {
    const rules = readText('deploy/redis/user.acl').trim().split(/\s+/);
    const { args } = container('StatefulSet');

    expect(args.slice(args.indexOf('>$(SLUICE_PASSWORD)') + 1)).toEqual(rules);
  });

  test('has both passwords in a Secret, whose change rolls all pods', () => {
    const { metadata, data } = theOne(objects, 'Secret') as unknown as {
      metadata: { name: string };
      data: Readonly<Record<string, string>>;
    };
    const plain = Object.entries(data).map(([key, value]) => [
      key,
      Buffer.from(value, 'base64').toString(),
    ]);

    expect(metadata.name).toMatch(/^sluice-redis-[a-z0-9]{10}$/);
    expect(Object.fromEntries(plain)).toMatchObject({ username: 'sluice' });
    const asked = [...container('StatefulSet').env, ...container('Deployment').env];
    for (const { valueFrom } of asked) {
      expect(valueFrom.secretKeyRef.name).toBe(metadata.name);
      expect(Object.keys(data)).toContain(valueFrom.secretKeyRef.key);
    }
  });

  test('is reached by the replicas only, and reaches nobody', () => {
    const policy = objects.find(
      ({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.name === 'sluice-redis',
    );
    const { podSelector, policyTypes, ingress, egress } = policy!.spec as {
      podSelector: { matchLabels: object };
      policyTypes: string[];
      ingress: { from: { podSelector: { matchLabels: object } }[]; ports: unknown }[];
      egress?: unknown;
    };

    expect(template('StatefulSet').metadata.labels).toMatchObject(podSelector.matchLabels);
    expect(template('Deployment').metadata.labels).not.toMatchObject(podSelector.matchLabels);
    expect(policyTypes).toEqual(['Ingress', 'Egress']);
    expect(egress).toBeUndefined();
    expect(ingress).toHaveLength(1);
    expect(ingress[0]!.from).toHaveLength(1);
    expect(ingress[0]!.from[0]!).not.toHaveProperty('namespaceSelector');
    expect(template('Deployment').metadata.labels).toMatchObject(
      ingress[0]!.from[0]!.podSelector.matchLabels,
    );
    expect(ingress[0]!.ports).toEqual([{ protocol: 'TCP', port: 'redis' }]);
  });
});
