import { spawnSync } from 'node:child_process';
import { existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';

import { findProgram } from './install-package.mjs';
import { ROOT } from './run.mjs';
import { GET_ALL, skipping } from './skipping.mjs';

const BUILT_PROGRAMS = join(ROOT, 'node_modules', '.cache', 'sluice', 'bin');
const BUILD_TIMEOUT_MILLIS = 15 * 60 * 1000;
/** Go's last lines have the error. The lines before them are downloads. */
const REASON_LINES = 5;

// All build with Go 1.26; newer versions of kustomize need a newer Go.
const HELM = { name: 'helm', module: 'helm.sh/helm/v3/cmd/helm', version: 'v3.22.0' };
const HELM_4 = { name: 'helm', module: 'helm.sh/helm/v4/cmd/helm', version: 'v4.3.2' };
const KUSTOMIZE = {
  name: 'kustomize',
  module: 'sigs.k8s.io/kustomize/kustomize/v5',
  version: 'v5.8.2',
};
const ACTIONLINT = {
  name: 'actionlint',
  module: 'github.com/rhysd/actionlint/cmd/actionlint',
  version: 'v1.7.12',
};
const OAPI_CODEGEN = {
  name: 'oapi-codegen',
  module: 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen',
  version: 'v2.8.2',
};

/**
 * Finds the tools that render the chart and the manifests, the one that checks workflows, and the one that generates a
 * client in Go. Returns environment variables for the tests: SLUICE_TEST_HELM, SLUICE_TEST_HELM_4,
 * SLUICE_TEST_ACTIONLINT and SLUICE_TEST_OAPI_CODEGEN are the paths of a helm 3, a helm 4, of actionlint and of
 * oapi-codegen, and SLUICE_TEST_KUSTOMIZE a JSON list of the words that render a folder. The variable of a tool that is missing is empty.
 * @param options.get whether one that is not on PATH is built with Go, into node_modules
 */
export function findDeployTools({ get }) {
  const find = get ? findOrBuild : builtPath;
  const go = findProgram('go');
  const command = !get && go ? GET_ALL : undefined;
  const helm = findHelm(3) ?? find(HELM) ?? '';
  if (!helm) skipping('helm 3', 'the chart', command);
  const helm4 = findHelm(4) ?? find(HELM_4) ?? '';
  if (!helm4) skipping('helm 4', 'the chart with it', command);
  const kustomize = findKustomize() ?? renderingWith(find(KUSTOMIZE)) ?? '';
  if (!kustomize) skipping('kustomize or kubectl', 'the Kubernetes manifests', command);
  const actionlint = findProgram('actionlint') ?? find(ACTIONLINT) ?? '';
  if (!actionlint) skipping('actionlint', 'the workflows', command);
  // The client is also compiled.
  const oapiCodegen = go ? (find(OAPI_CODEGEN) ?? '') : '';
  if (!oapiCodegen) skipping('oapi-codegen with Go', 'a generated client in Go', command);
  return {
    SLUICE_TEST_HELM: helm,
    SLUICE_TEST_HELM_4: helm4,
    SLUICE_TEST_KUSTOMIZE: kustomize ? JSON.stringify(kustomize) : '',
    SLUICE_TEST_ACTIONLINT: actionlint,
    SLUICE_TEST_OAPI_CODEGEN: oapiCodegen,
  };
}

function findHelm(major) {
  const onPath = findProgram('helm');
  if (!onPath) return undefined;
  const { stdout } = spawnSync(onPath, ['version', '--short'], { encoding: 'utf8' });
  return (stdout ?? '').startsWith(`v${major}.`) ? onPath : undefined;
}

function findKustomize() {
  const kubectl = findProgram('kubectl');
  return renderingWith(findProgram('kustomize')) ?? (kubectl && [kubectl, 'kustomize']);
}

function renderingWith(kustomize) {
  return kustomize && [kustomize, 'build'];
}

function findOrBuild(tool) {
  return builtPath(tool) ?? (findProgram('go') && build(tool) ? pathOf(tool) : undefined);
}

function builtPath(tool) {
  return existsSync(pathOf(tool)) ? pathOf(tool) : undefined;
}

/** The file's name has the version, so that a new version builds the tool again. */
function pathOf({ name, version }) {
  return join(BUILT_PROGRAMS, `${name}-${version}`);
}

function build(tool) {
  const { name, module, version } = tool;
  const args = ['install', `${module}@${version}`];
  console.error(`no ${name} found; running go ${args.join(' ')}, which can take minutes ...`);
  const { status, error, stderr } = spawnSync('go', args, {
    encoding: 'utf8',
    env: { ...process.env, GOBIN: BUILT_PROGRAMS },
    timeout: BUILD_TIMEOUT_MILLIS,
  });
  if (status !== 0) {
    if (error) console.error(error.message);
    console.error((stderr ?? '').trimEnd().split('\n').slice(-REASON_LINES).join('\n'));
    return false;
  }
  renameSync(join(BUILT_PROGRAMS, name), pathOf(tool));
  return true;
}
