import { basename } from 'node:path';

import { type KubernetesObject, theOne } from './kubernetes-object.js';
import { describeWithDeployTools, renderOverlay } from './rendered-objects.js';
import { readText } from './repository-files.js';
import { settingsIn } from './settings-check.js';

interface Variable {
  readonly name: string;
  readonly valueFrom: { readonly secretKeyRef: { readonly name: string; readonly key: string } };
}

interface Volume {
  readonly secret: {
    readonly secretName: string;
    readonly items: readonly { readonly key: string; readonly path: string }[];
  };
}

interface Workload {
  readonly spec: {
    readonly template: {
      readonly metadata: { readonly labels: object };
      readonly spec: {
        readonly volumes: readonly [Volume];
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
  const redis = () => template('StatefulSet').spec.containers[0];
  const password = (variable: string) =>
    redis().env.find(({ name }) => name === variable)!.valueFrom.secretKeyRef;
  const filesOfReplicas = () => template('Deployment').spec.volumes[0].secret;

  test('has a user of its own for the replicas, and needs a password from every user', () => {
    const { args } = redis();

    expect(args.join(' ')).toContain('--requirepass $(REDISCLI_AUTH) --user sluice on ');
    expect(args).toContain('>$(SLUICE_PASSWORD)');
    expect(filesOfReplicas().items).toContainEqual({
      key: password('SLUICE_PASSWORD').key,
      path: basename(settingsIn(objects).REDIS_PASSWORD_FILE!),
    });
    // The replicas do not get the password of the default user.
    const keys = filesOfReplicas().items.map(({ key }) => key);
    expect(keys).not.toContain(password('REDISCLI_AUTH').key);
  });

  test('gives the user of the replicas its rules', () => {
    const rules = ['user', 'functions'].flatMap((file) =>
      readText(`deploy/redis/${file}.acl`).trim().split(/\s+/),
    );
    const { args } = redis();

    expect(args.slice(args.indexOf('>$(SLUICE_PASSWORD)') + 1)).toEqual(rules);
  });

  test('accepts connections only from the replicas, and opens none', () => {
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
