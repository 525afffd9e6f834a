import type { KubernetesObject } from './kubernetes-object.js';

type Fields = Readonly<Record<string, unknown>>;

/** Labels for the tool that made an object. Kustomize has no releases and charts. */
const LABELS_OF_THE_TOOL = [
  'app.kubernetes.io/managed-by',
  'app.kubernetes.io/instance',
  'helm.sh/chart',
];
/** Charts label every object with it, and the base only workloads. */
const VERSION_LABEL = 'app.kubernetes.io/version';
/**
 * So that changed settings and passwords roll the pods, kustomize ends the names of ConfigMaps and Secrets with a hash,
 * and charts annotate the pods with one.
 */
const HASHED_NAME = /^(.+)-[a-z0-9]{10}$/;
const HASH_ANNOTATION = 'checksum/config';

/**
 * Objects by kind and name, without the necessary differences between the objects of kustomize and of a chart.
 * All known differences are here.
 */
export function comparable(objects: readonly KubernetesObject[]): Record<string, unknown> {
  const names = new Map(
    objects
      .filter(({ kind }) => kind === 'ConfigMap' || kind === 'Secret')
      .map(({ metadata: { name } }) => [name, HASHED_NAME.exec(name)?.[1] ?? name]),
  );
  const change = (value: unknown): unknown => {
    if (typeof value === 'string') return names.get(value) ?? value;
    if (Array.isArray(value)) return value.map(change);
    if (value === null || typeof value !== 'object') return value;
    const { annotations, ...fields } = without(LABELS_OF_THE_TOOL, value as Fields);
    return mapFields(change, { ...fields, ...withoutHash(annotations as Fields | undefined) });
  };
  const isScaled = objects.some(({ kind }) => kind === 'HorizontalPodAutoscaler');
  return Object.fromEntries(
    objects.map((object) => {
      const labelled = withVersionWhereItRuns(object);
      const changed = change(isScaled ? withoutReplicas(labelled) : labelled) as KubernetesObject;
      return [`${changed.kind} ${changed.metadata.name}`, changed];
    }),
  );
}

function withVersionWhereItRuns(object: KubernetesObject): KubernetesObject {
  if (object.kind === 'Deployment') return object;
  const labels = without([VERSION_LABEL], object.metadata.labels as Fields);
  return { ...object, metadata: { ...object.metadata, labels } };
}

/** Only Helm can see how many replicas the autoscaler has started. */
function withoutReplicas(object: KubernetesObject): KubernetesObject {
  if (object.kind !== 'Deployment') return object;
  return { ...object, spec: without(['replicas'], object.spec as Fields) };
}

function withoutHash(annotations: Fields | undefined): Fields {
  const others = without([HASH_ANNOTATION], annotations ?? {});
  return Object.keys(others).length > 0 ? { annotations: others } : {};
}

function without(names: readonly string[], fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !names.includes(name)));
}

function mapFields(change: (value: unknown) => unknown, fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, change(value)]));
}
