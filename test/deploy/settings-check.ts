import { basename, dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';

import { parseSettings, settingsSchema } from '../../src/config/settings.js';
import { SECRETS } from '../../src/config/secret-files.js';
import { parseRules } from '../../src/rules/parse-rules.js';
import { type KubernetesObject, theOne } from './kubernetes-object.js';

interface Container {
  readonly name: string;
  readonly envFrom: readonly { readonly configMapRef: { readonly name: string } }[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
  readonly livenessProbe: Probe;
  readonly readinessProbe: Probe;
  readonly startupProbe: Probe;
}

interface Probe {
  readonly httpGet: { readonly scheme?: string; readonly port: string };
}

interface Deployment {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly containers: readonly Container[];
        readonly volumes?: readonly Volume[];
      };
    };
  };
}

interface Volume {
  readonly name: string;
  readonly configMap?: { readonly name: string };
  readonly secret?: { readonly items?: readonly { readonly path: string }[] };
}

type Data = Readonly<Record<string, string>>;

const SECRET_FILES = SECRETS.map((name) => `${name}_FILE`);
const KNOWN = [...Object.keys(settingsSchema.shape), ...SECRET_FILES];
/** A text for each secret: the program reads secrets with its settings, and the mounted files do not exist here. */
const ANY_FILE = fileURLToPath(import.meta.url);

/** The settings that a rendered ConfigMap and Deployment give to the program. */
export function settingsIn(objects: readonly KubernetesObject[]): Data {
  const { env = [], envFrom } = containerIn(objects);
  const fromConfigMaps = envFrom.flatMap(({ configMapRef: { name } }) => {
    const data = dataOf(objects, name);
    if (data === undefined) throw new Error(`there is no ConfigMap ${name}`);
    return Object.entries(data);
  });
  // The value of a Secret is unknown here, and any text is valid.
  const own = env.map(({ name, value }) => [name, value ?? 'text'] as const);
  return Object.fromEntries([...fromConfigMaps, ...own]);
}

/** Errors in these settings: unknown names, invalid values, and missing files. */
export function settingsErrors(objects: readonly KubernetesObject[]): string[] {
  const settings = settingsIn(objects);
  const unknown = Object.keys(settings).filter((name) => !KNOWN.includes(name));
  return [
    ...unknown.map((name) => `${name} is no setting`),
    ...refusals(settings),
    ...filesThatAreNotMounted(settings, objects),
    ...probesThatSpeakAnotherProtocol(settings, containerIn(objects)),
    ...portsThatAreAnother(settings, containerIn(objects)),
    ...rulesErrors(settings, objects),
  ];
}

/** The volumes in which no setting names a file. Such a volume keeps a pod from starting if its Secret is missing. */
export function unusedVolumes(objects: readonly KubernetesObject[]): string[] {
  const files = Object.entries(settingsIn(objects)).filter(([name]) => name.endsWith('_FILE'));
  const { volumeMounts = [] } = containerIn(objects);
  const used = volumeMounts.filter(({ mountPath }) =>
    files.some(([, path]) => path.startsWith(`${mountPath}/`)),
  );
  return volumesIn(objects)
    .map(({ name }) => name)
    .filter((name) => !used.some((mount) => mount.name === name));
}

/** Undefined if the objects do not include this ConfigMap. */
function dataOf(objects: readonly KubernetesObject[], name: string): Data | undefined {
  const found = objects.find(
    (object) => object.kind === 'ConfigMap' && object.metadata.name === name,
  );
  return found?.data as Data | undefined;
}

function podSpecIn(objects: readonly KubernetesObject[]): Deployment['spec']['template']['spec'] {
  return (theOne(objects, 'Deployment') as unknown as Deployment).spec.template.spec;
}

function volumesIn(objects: readonly KubernetesObject[]): readonly Volume[] {
  return podSpecIn(objects).volumes ?? [];
}

function containerIn(objects: readonly KubernetesObject[]): Container {
  const { containers } = podSpecIn(objects);
  const container = containers.find(({ name }) => name === 'sluice');
  if (container === undefined) throw new Error('no container is sluice');
  return container;
}

function refusals(settings: Data): string[] {
  try {
    const secretFiles = SECRET_FILES.filter((name) => name in settings);
    parseSettings({
      ...settings,
      ...Object.fromEntries(secretFiles.map((name) => [name, ANY_FILE])),
    });
    return [];
  } catch (error) {
    return [(error as Error).message];
  }
}

function filesThatAreNotMounted(settings: Data, objects: readonly KubernetesObject[]): string[] {
  return Object.entries(settings)
    .filter(([name]) => name.endsWith('_FILE'))
    .filter(([, path]) => !isMounted(path, objects))
    .map(([name, path]) => `${name}: nothing is mounted at ${path}`);
}

function isMounted(path: string, objects: readonly KubernetesObject[]): boolean {
  const { volumeMounts = [] } = containerIn(objects);
  const mount = volumeMounts.find(({ mountPath }) => path.startsWith(`${mountPath}/`));
  const volume = volumesIn(objects).find(({ name }) => name === mount?.name);
  const items = volume?.secret?.items;
  return mount !== undefined && (items?.some((item) => item.path === basename(path)) ?? true);
}

/** Each named port must match its setting, and probes must use an existing port. */
function portsThatAreAnother(
  { PORT = '8080', ADMIN_PORT, GRPC_PORT }: Data,
  { ports = [], livenessProbe, readinessProbe, startupProbe }: Container,
): string[] {
  const wanted = {
    http: Number(PORT),
    ...(ADMIN_PORT && { admin: Number(ADMIN_PORT) }),
    ...(GRPC_PORT && { grpc: Number(GRPC_PORT) }),
  };
  const there = Object.fromEntries(ports.map(({ name, containerPort }) => [name, containerPort]));
  const probes = Object.entries({ livenessProbe, readinessProbe, startupProbe });
  return [
    ...(isDeepStrictEqual(there, wanted) ? [] : [`the ports must be ${JSON.stringify(wanted)}`]),
    ...probes
      .filter(([, { httpGet }]) => httpGet.port !== (ADMIN_PORT ? 'admin' : 'http'))
      .map(([name]) => `${name} must ask the inner port`),
  ];
}

/** Errors in the rules, if these objects include rules. */
function rulesErrors({ CONFIG_FILE = '' }: Data, objects: readonly KubernetesObject[]): string[] {
  const { volumeMounts = [] } = containerIn(objects);
  const mount = volumeMounts.find(({ mountPath }) => mountPath === dirname(CONFIG_FILE));
  const volume = volumesIn(objects).find(({ name }) => name === mount?.name);
  if (volume?.configMap === undefined) return [];
  const files = dataOf(objects, volume.configMap.name);
  if (files === undefined) return [];
  const text = files[basename(CONFIG_FILE)];
  if (text === undefined) return [`CONFIG_FILE: ${volume.configMap.name} has no such file`];
  try {
    parseRules(text);
    return [];
  } catch (error) {
    return [`CONFIG_FILE: ${(error as Error).message}`];
  }
}

function probesThatSpeakAnotherProtocol(
  { TLS_CERT_FILE }: Data,
  { livenessProbe, readinessProbe, startupProbe }: Container,
): string[] {
  const wanted = TLS_CERT_FILE === undefined ? 'HTTP' : 'HTTPS';
  return Object.entries({ livenessProbe, readinessProbe, startupProbe })
    .filter(([, { httpGet }]) => (httpGet.scheme ?? 'HTTP') !== wanted)
    .map(([name]) => `${name} must speak ${wanted}`);
}
