import { spawnSync } from 'node:child_process';
import { existsSync, renameSync } from 'node:fs';
import { join } from 'node:path';

import { findProgram } from './install-package.mjs';
import { ROOT } from './run.mjs';

const BUILT_PROGRAMS = join(ROOT, 'node_modules', '.cache', 'sluice', 'bin');
const BUILD_TIMEOUT_MILLIS = 15 * 60 * 1000;
/** Go's last lines have the error. The lines before them are downloads. */
const REASON_LINES = 5;

// Both build with Go 1.26; newer versions of kustomize need a newer Go.
const HELM = { name: 'helm', module: 'helm.sh/helm/v3/cmd/helm', version: 'v3.22.0' };
const KUSTOMIZE = {
  name: 'kustomize',
  module: 'sigs.k8s.io/kustomize/kustomize/v5',
  version: 'v5.8.2',
};

/**
 * Finds the tools that render the chart and the manifests. Returns environment variables for the tests of
 * both: SLUICE_TEST_HELM is the path of a helm 3, and SLUICE_TEST_KUSTOMIZE a JSON list of the words that
 * render a folder. A tool that is not on PATH is built with Go. Its variable is empty if that fails.
 */
export function findDeployTools() {
  const helm = findHelm() ?? '';
  if (!helm) skipping('helm 3', 'the chart');
  const kustomize = findKustomize();
  if (!kustomize) skipping('kustomize or kubectl', 'the Kubernetes manifests');
  return {
    SLUICE_TEST_HELM: helm,
    SLUICE_TEST_KUSTOMIZE: kustomize ? JSON.stringify(kustomize) : '',
  };
}

function skipping(program, what) {
  const why = findProgram('go') ? 'and building it failed' : 'and no go to build it';
  console.error(`no ${program}, ${why}: skipping the tests of ${what}`);
}

function findHelm() {
  const onPath = findProgram('helm');
  return onPath && isHelm3(onPath) ? onPath : findOrBuild(HELM);
}

function isHelm3(path) {
  const { stdout } = spawnSync(path, ['version', '--short'], { encoding: 'utf8' });
  return (stdout ?? '').startsWith('v3.');
}

function findKustomize() {
  const kustomize = findProgram('kustomize');
  if (kustomize) return [kustomize, 'build'];
  const kubectl = findProgram('kubectl');
  if (kubectl) return [kubectl, 'kustomize'];
  const built = findOrBuild(KUSTOMIZE);
  return built && [built, 'build'];
}

function findOrBuild(tool) {
  // The version is in the file's name, so that a change of it here builds the tool again.
  const path = join(BUILT_PROGRAMS, `${tool.name}-${tool.version}`);
  return existsSync(path) || (findProgram('go') && build(tool, path)) ? path : undefined;
}

function build({ name, module, version }, path) {
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
  renameSync(join(BUILT_PROGRAMS, name), path);
  return true;
}
