import { type KubernetesObject, theOne } from './kubernetes-object.js';
import { describeWithDeployTools, renderOverlay } from './rendered-objects.js';
import { schemaErrors } from './schema-check.js';
import { settingsErrors, settingsIn, unusedVolumes } from './settings-check.js';

interface PodSpec {
  readonly terminationGracePeriodSeconds: number;
  readonly securityContext: unknown;
  readonly automountServiceAccountToken: boolean;
  readonly containers: readonly {
    readonly image: string;
    readonly securityContext: unknown;
  }[];
}

interface Workload {
  readonly spec: { readonly template: { readonly spec: PodSpec } };
}

/** The time that a stop takes after its grace: turning waiters away, withdrawals and the last answers. */
const LAST_SECONDS = 5;

describeWithDeployTools(['kustomize'], 'the overlay', () => {
  describe.each(['dev', 'prod', 'prod-monitored'])('%s', (overlay) => {
    let objects: KubernetesObject[];
    beforeAll(async () => {
      objects = await renderOverlay(overlay);
    });

    const podSpecs = (): PodSpec[] =>
      objects
        .filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet')
        .map((object) => (object as unknown as Workload).spec.template.spec);

    test('is valid for the Kubernetes API', () => {
      expect(schemaErrors(objects)).toEqual([]);
    });

    test('has valid settings', () => {
      expect(settingsErrors(objects)).toEqual([]);
      expect(unusedVolumes(objects)).toEqual([]);
    });

    test('gives a replica enough time to stop', () => {
      const deployment = theOne(objects, 'Deployment') as unknown as Workload;
      const { spec } = deployment.spec.template;
      const { SHUTDOWN_DELAY_MILLIS: delay, SHUTDOWN_GRACE_MILLIS: grace } = settingsIn(objects);
      expect(spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(
        (Number(delay) + Number(grace)) / 1000 + LAST_SECONDS,
      );
    });

    test('runs every container without rights, on images with a version', () => {
      for (const spec of podSpecs()) {
        expect(spec).toMatchObject({
          automountServiceAccountToken: false,
          securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
        });
        for (const { image, securityContext } of spec.containers) {
          expect(image).toMatch(/:\d+\.\d+\.\d+/);
          expect(securityContext).toEqual({
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          });
        }
      }
    });
  });
});
