import { type KubernetesObject, theOne } from './kubernetes-object.js';
import { describeWithDeployTools, renderChart } from './rendered-objects.js';
import { schemaErrors } from './schema-check.js';

const RULES = 'keys: [{ key_pattern: a }]';

interface Job {
  readonly spec: {
    readonly template: {
      readonly metadata: { readonly labels: Readonly<Record<string, string>> };
      readonly spec: {
        readonly volumes: readonly { readonly configMap: { readonly name: string } }[];
        readonly containers: readonly {
          readonly command: readonly string[];
          readonly volumeMounts: readonly { readonly mountPath: string }[];
        }[];
      };
    };
  };
}

const jobIn = (objects: readonly KubernetesObject[]) => theOne(objects, 'Job') as unknown as Job;
const hooksIn = (objects: readonly KubernetesObject[]) =>
  objects.filter(({ metadata }) => JSON.stringify(metadata).includes('"helm.sh/hook"'));

describeWithDeployTools(['helm'], 'the check of the rules before they reach pods', () => {
  test('is off, and has nothing to check without rules', async () => {
    expect(hooksIn(await renderChart({ rules: { text: RULES } }))).toEqual([]);
    expect(hooksIn(await renderChart({ rules: { check: true } }))).toEqual([]);
  });

  test('reads the new rules from a copy, before the release changes', async () => {
    const objects = await renderChart({ rules: { text: RULES, check: true } });
    const hooks = hooksIn(objects);

    expect(schemaErrors(hooks)).toEqual([]);
    expect(hooks).toMatchObject([
      {
        kind: 'ConfigMap',
        metadata: { annotations: { 'helm.sh/hook': 'pre-install,pre-upgrade' } },
        data: { 'rules.yaml': RULES },
      },
      { kind: 'Job', metadata: { annotations: { 'helm.sh/hook': 'pre-install,pre-upgrade' } } },
    ]);
    const { volumes, containers } = jobIn(objects).spec.template.spec;
    expect(volumes.map(({ configMap }) => configMap.name)).toEqual([hooks[0]!.metadata.name]);
    expect(containers[0]!.command.slice(-2)).toEqual([
      '--check-config',
      `${containers[0]!.volumeMounts[0]!.mountPath}/rules.yaml`,
    ]);
  });

  test("reads a ConfigMap of the user's", async () => {
    const objects = await renderChart({ rules: { configMap: 'ours', key: 'a.json', check: true } });

    expect(hooksIn(objects).map(({ kind }) => kind)).toEqual(['Job']);
    const { volumes, containers } = jobIn(objects).spec.template.spec;
    expect(volumes.map(({ configMap }) => configMap.name)).toEqual(['ours']);
    expect(containers[0]!.command.at(-1)).toBe('/etc/sluice/rules/a.json');
  });

  test('runs as the pods do, and no Service or policy selects it', async () => {
    const values = {
      rules: { text: RULES, check: true },
      image: { repository: 'registry.example/sluice' },
      podSecurityContext: { runAsUser: null },
      nodeSelector: { pool: 'limits' },
    };
    const objects = await renderChart(values);
    const { metadata, spec } = jobIn(objects).spec.template;
    const pods = theOne(objects, 'Deployment').spec as { template: { spec: typeof spec } };
    const { selector } = theOne(objects, 'Service').spec as { selector: object };

    expect(spec).toMatchObject({ nodeSelector: values.nodeSelector, restartPolicy: 'Never' });
    const [check, sluice] = [spec.containers[0]!, pods.template.spec.containers[0]!];
    for (const field of ['image', 'resources', 'securityContext'] as const) {
      expect(check).toHaveProperty(field, (sluice as unknown as Record<string, unknown>)[field]);
    }
    expect(metadata.labels).not.toMatchObject(selector);
  });
});

describeWithDeployTools(['helm'], "the alerts' runbooks", () => {
  interface Rules {
    readonly groups: readonly {
      readonly rules: readonly { readonly annotations: Readonly<Record<string, string>> }[];
    }[];
  }
  const annotations = async (monitoring: object) => {
    const objects = await renderChart({ monitoring: { enabled: true, ...monitoring } });
    const { groups } = theOne(objects, 'PrometheusRule').spec as Rules;
    return groups.flatMap(({ rules }) => rules.map((rule) => rule.annotations));
  };

  test('are files of the project, or full links below an address', async () => {
    const files = (await annotations({})).map(({ runbook }) => runbook!);
    expect(files[0]).toBe('docs/metrics-and-alerts.md#sluicegone');

    for (const runbookUrl of ['https://git.example/sluice/', 'https://git.example/sluice']) {
      const linked = await annotations({ runbookUrl });
      expect(linked.map(({ runbook_url: url }) => url)).toEqual(
        files.map((file) => `https://git.example/sluice/${file}`),
      );
      expect(linked.filter((one) => 'runbook' in one)).toEqual([]);
    }
  });
});
