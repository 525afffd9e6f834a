import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { isOfDeployment, type ShellBlock, shellBlocks } from '../support/docs/shell-blocks.js';
import { ShellSession } from '../support/docs/shell-session.js';
import { compose } from '../support/docker.js';
import { IMAGE } from './docker/build-image.js';
import { DOCKER_VARIABLES, dockerScript, quotedWords } from './docker/docker-script.js';
import { provided } from '../support/provided.js';
import { useTemporaryFolder } from '../support/temporary-folder.js';
import { KUBERNETES_VERSION } from './rendered-objects.js';
import { uniqueKey } from '../support/unique-key.js';

const START_TIMEOUT_MILLIS = 300_000;

const host = provided('SLUICE_TEST_DOCKER_HOST');
const helm = provided('SLUICE_TEST_HELM');
const kustomize = quotedWords('SLUICE_TEST_KUSTOMIZE');
const project = uniqueKey();

/** Appends a command that fails to a file in the session's folder. */
const OR_FAILED = '> /dev/null || echo "$0 $*" >> "$CURL_HOME/failed"';

/** There is no cluster, so objects are only rendered, not installed or applied. */
const PROGRAMS: Readonly<Record<string, string>> = {
  ...(host !== '' && { docker: dockerScript(project) }),
  ...(helm !== '' && {
    helm: [
      'shift; if [ "$1" = --install ]; then shift; fi',
      `'${helm}' template --kube-version ${KUBERNETES_VERSION} "$@" ${OR_FAILED}`,
    ].join('\n'),
  }),
  ...(kustomize !== '' && { kubectl: `shift 2; ${kustomize} "$@" ${OR_FAILED}` }),
};

/** Whether a block is skipped for a missing program, which the search for programs announces. */
function isMissing({ code }: ShellBlock): boolean {
  const needed = /^(docker|helm|kubectl)\b/m.exec(code)?.[1] ?? 'docker';
  return !(needed in PROGRAMS);
}

const PAGES = ['docs/docker.md', 'docs/kubernetes.md', 'deploy/helm/sluice/README.md'];

describe.each(PAGES)('the commands of %s', (page) => {
  const folder = useTemporaryFolder();
  const blocks = shellBlocks(page).filter(
    (block) => block.notRun === undefined && isOfDeployment(block),
  );
  let session: ShellSession;
  beforeAll(async () => {
    // The tests must not make the pages' image in a Docker engine of the user.
    const replaced = { 'sluice:0.1.0': IMAGE };
    session = await ShellSession.start({
      folder,
      inProject: true,
      programs: PROGRAMS,
      environment: DOCKER_VARIABLES,
      replaced,
    });
  });
  afterAll(async () => {
    await session.end();
    if (host !== '') await compose({ COMPOSE_PROJECT_NAME: project }, 'down', '--volumes');
  }, START_TIMEOUT_MILLIS);

  test('are found', () => {
    expect(blocks.length).toBeGreaterThan(0);
  });

  for (const block of blocks) {
    const run = isMissing(block) ? test.skip : test;
    run(
      `${page}:${block.line} prints what the page says`,
      async () => {
        const { printed, expected } = await session.run(block);
        expect(printed).toBe(expected);
        const failed = join(folder, 'failed');
        expect(existsSync(failed) ? readFileSync(failed, 'utf8') : '').toBe('');
      },
      START_TIMEOUT_MILLIS,
    );
  }
});
