import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

import { parseAllDocuments } from 'yaml';

import { provided } from '../support/provided.js';
import type { KubernetesObject } from './kubernetes-object.js';
import { type Replacements, withReplacements } from './replacements.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
/** The oldest version that the chart supports. A helm that was built with Go assumes a far older one. */
export const KUBERNETES_VERSION = '1.30.0';

export const CHART = `${ROOT}deploy/helm/sluice`;

/** The programs that `scripts/lib/find-deploy-tools.mjs` looks for. */
const VARIABLES = {
  helm: 'SLUICE_TEST_HELM',
  helm4: 'SLUICE_TEST_HELM_4',
  kustomize: 'SLUICE_TEST_KUSTOMIZE',
} as const;
type DeployTool = keyof typeof VARIABLES;

/** A program's exit code and output. */
export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Options of a rendering that differ from the default. */
export interface ChartOptions {
  readonly release?: string;
  /** A folder or package instead of the chart of this project. */
  readonly chart?: string;
  /** The URL of a Kubernetes API that the chart may ask about running objects. */
  readonly cluster?: string;
  readonly program?: 'helm' | 'helm4';
  /** Whether the objects of `helm test` are included. */
  readonly withTests?: boolean;
}

/**
 * `describe` for tests that need these programs. Skipped if one is missing, which
 * `scripts/lib/find-deploy-tools.mjs` announces.
 */
export function describeWithDeployTools(
  tools: readonly DeployTool[],
  title: string,
  tests: () => void,
): void {
  if (tools.every((tool) => found(tool) !== '')) describe(title, tests);
  else describe.skip(title, tests);
}

/** The objects that an overlay of `k8s/overlays` makes. */
export function renderOverlay(overlay: string): Promise<KubernetesObject[]> {
  return kustomize(`${ROOT}k8s/overlays/${overlay}`);
}

/** The objects of an overlay whose files a user has changed. The files are named below `k8s/overlays`. */
export async function renderChanged(
  overlay: string,
  changes: Readonly<Record<string, Replacements>>,
): Promise<KubernetesObject[]> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-k8s-'));
  try {
    await cp(`${ROOT}k8s`, folder, { recursive: true });
    for (const [file, replacements] of Object.entries(changes)) {
      const path = join(folder, 'overlays', file);
      await writeFile(path, withReplacements(file, await readFile(path, 'utf8'), replacements));
    }
    return await kustomize(join(folder, 'overlays', overlay));
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** The objects of an overlay with components of `k8s/components`. */
export async function renderWithComponents(
  overlay: string,
  ...components: readonly string[]
): Promise<KubernetesObject[]> {
  // kustomize accepts only relative paths of folders.
  const folder = await mkdtemp(join(tmpdir(), 'sluice-overlay-'));
  const toRoot = relative(await realpath(folder), ROOT);
  const kustomization = {
    resources: [`${toRoot}/k8s/overlays/${overlay}`],
    components: components.map((name) => `${toRoot}/k8s/components/${name}`),
  };
  try {
    await writeFile(join(folder, 'kustomization.yaml'), JSON.stringify(kustomization));
    return await kustomize(folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** The objects that the chart makes with these values. */
export async function renderChart(
  values: object = {},
  options: ChartOptions = {},
): Promise<KubernetesObject[]> {
  return objectsIn(await templateChart(values, options));
}

/** Helm's output for these values: the objects as text, or its error. */
export function templateChart(
  values: object,
  {
    release = 'sluice',
    chart = CHART,
    cluster,
    program = 'helm',
    withTests = false,
  }: ChartOptions = {},
): Promise<Ended> {
  const args = ['template', release, chart, '--namespace', 'x', '--values', '-'];
  if (!withTests) args.push('--skip-tests');
  const looking = ['--dry-run=server', '--kubeconfig', '/dev/null', '--kube-apiserver'];
  return helm(
    [...args, '--kube-version', KUBERNETES_VERSION, ...(cluster ? [...looking, cluster] : [])],
    JSON.stringify(values),
    program,
  );
}

/** Runs helm with these arguments. */
export function helm(
  args: readonly string[],
  input = '',
  program: DeployTool = 'helm',
): Promise<Ended> {
  return run(found(program), args, input);
}

async function kustomize(folder: string): Promise<KubernetesObject[]> {
  const [program, ...args] = JSON.parse(found('kustomize')) as [string, ...string[]];
  return objectsIn(await run(program, [...args, folder]));
}

function found(tool: DeployTool): string {
  return provided(VARIABLES[tool]);
}

function run(program: string, args: readonly string[], input = ''): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = execFile(program, args, (error, stdout, stderr) => {
      if (error === null) resolve({ code: 0, stdout, stderr });
      else if (typeof error.code === 'number') resolve({ code: error.code, stdout, stderr });
      // It did not start, or was killed.
      else reject(new Error(`${program}: ${error.message}`, { cause: error }));
    });
    child.stdin!.on('error', reject);
    child.stdin!.end(input);
  });
}

function objectsIn({ code, stdout, stderr }: Ended): KubernetesObject[] {
  if (code !== 0) throw new Error(stderr);
  return parseAllDocuments(stdout).flatMap((document) => {
    if (document.errors[0] !== undefined) throw document.errors[0];
    const object = document.toJS() as KubernetesObject | null;
    return object === null ? [] : [object];
  });
}
