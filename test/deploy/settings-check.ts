import { parseSettings, settingsSchema } from '../../src/config/settings.js';
import { SECRETS } from '../../src/config/secret-files.js';
import { type KubernetesObject, theOne } from './kubernetes-object.js';

interface Container {
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly volumeMounts?: readonly { readonly mountPath: string }[];
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
  readonly startupProbe: Probe;
}

interface Probe {
  readonly httpGet: { readonly scheme?: string };
}

interface Deployment {
  readonly spec: {
    readonly template: { readonly spec: { readonly containers: readonly Container[] } };
  };
}

const KNOWN = [...Object.keys(settingsSchema.shape), ...SECRETS.map((name) => `${name}_FILE`)];

/** The settings that a rendered ConfigMap and Deployment give to the program. */
export function settingsIn(objects: readonly KubernetesObject[]): Record<string, string> {
  const { data } = theOne(objects, 'ConfigMap') as unknown as { data: Record<string, string> };
  const { env = [] } = containerIn(objects);
  // What comes from a Secret is not known here, and any text goes.
  return { ...data, ...Object.fromEntries(env.map(({ name, value }) => [name, value ?? 'text'])) };
}

/** What is wrong with these settings: ones the program does not know or take, or that need what is not there. */
export function settingsErrors(objects: readonly KubernetesObject[]): string[] {
  const settings = settingsIn(objects);
  const unknown = Object.keys(settings).filter((name) => !KNOWN.includes(name));
  return [
    ...unknown.map((name) => `${name} is no setting`),
    ...refusals(settings),
    ...filesThatAreNotMounted(settings, containerIn(objects)),
    ...probesThatSpeakAnotherProtocol(settings, containerIn(objects)),
  ];
}

function containerIn(objects: readonly KubernetesObject[]): Container {
  const deployment = theOne(objects, 'Deployment') as unknown as Deployment;
  const { containers } = deployment.spec.template.spec;
  if (containers.length !== 1) throw new Error(`${containers.length} containers`);
  return containers[0]!;
}

function refusals(settings: Readonly<Record<string, string>>): string[] {
  try {
    parseSettings(settings);
    return [];
  } catch (error) {
    return [(error as Error).message];
  }
}

function filesThatAreNotMounted(
  settings: Readonly<Record<string, string>>,
  { volumeMounts = [] }: Container,
): string[] {
  return Object.entries(settings)
    .filter(([name]) => name.endsWith('_FILE'))
    .filter(([, path]) => !volumeMounts.some(({ mountPath }) => path.startsWith(`${mountPath}/`)))
    .map(([name, path]) => `${name}: nothing is mounted at ${path}`);
}

function probesThatSpeakAnotherProtocol(
  { TLS_CERT_FILE }: Readonly<Record<string, string>>,
  { livenessProbe, readinessProbe, startupProbe }: Container,
): string[] {
  const wanted = TLS_CERT_FILE === undefined ? 'HTTP' : 'HTTPS';
  return Object.entries({ livenessProbe, readinessProbe, startupProbe })
    .filter(([, { httpGet }]) => (httpGet.scheme ?? 'HTTP') !== wanted)
    .map(([name]) => `${name} must speak ${wanted}`);
}
