import { parseSettings } from '../../../src/config/settings.js';
import { readData } from '../repository-files.js';

/** The settings of `k8s/base` for replacing replicas. */
export interface Deployment {
  readonly maxSurge: number;
  readonly maxUnavailable: number;
  readonly terminationGraceMillis: number;
  readonly shutdownDelayMillis: number;
  readonly shutdownGraceMillis: number;
}

interface Manifest {
  readonly spec: {
    readonly strategy: {
      readonly rollingUpdate: { readonly maxSurge: number; readonly maxUnavailable: number };
    };
    readonly template: {
      readonly spec: { readonly terminationGracePeriodSeconds: number };
    };
  };
}

interface Kustomization {
  readonly configMapGenerator: readonly { readonly literals: readonly string[] }[];
}

export function readDeployment(): Deployment {
  const { strategy, template } = (readData('k8s/base/deployment.yaml') as Manifest).spec;
  const { configMapGenerator } = readData('k8s/base/kustomization.yaml') as Kustomization;
  const settings = configMapGenerator.flatMap(({ literals }) =>
    literals.map((literal): [string, string] => {
      const [name = '', value = ''] = literal.split('=', 2);
      return [name, value];
    }),
  );
  const { SHUTDOWN_DELAY_MILLIS, SHUTDOWN_GRACE_MILLIS } = parseSettings(
    Object.fromEntries(settings),
  );
  return {
    ...strategy.rollingUpdate,
    terminationGraceMillis: 1000 * template.spec.terminationGracePeriodSeconds,
    shutdownDelayMillis: SHUTDOWN_DELAY_MILLIS,
    shutdownGraceMillis: SHUTDOWN_GRACE_MILLIS,
  };
}
