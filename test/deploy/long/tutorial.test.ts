import { join } from 'node:path';

import { type ShellBlock, shellBlocks } from '../../support/docs/shell-blocks.js';
import { redisPrograms, ShellSession } from '../../support/docs/shell-session.js';
import { compose } from '../../support/docker.js';
import { freePort } from '../../support/free-port.js';
import { provided } from '../../support/provided.js';
import { redisProgram } from '../../support/redis-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { uniqueKey } from '../../support/unique-key.js';
import { buildImage } from '../docker/build-image.js';
import { DOCKER_VARIABLES, dockerScript } from '../docker/docker-script.js';
import { ROOT } from '../repository-files.js';

const PAGE = 'docs/tutorial.md';
const START_TIMEOUT_MILLIS = 300_000;

const python = provided('SLUICE_TEST_CLIENT_PYTHON');
const redisServer = redisProgram() ?? '';
const project = uniqueKey();

/** The image is built before, since the session's folder has only links to the sources. */
const WITHOUT_BUILD = 'for word do shift; [ "$word" = --build ] || set -- "$@" "$word"; done\n';

interface Way {
  readonly way: string;
  /** Whether the programs that only this way needs are there. */
  readonly isThere: boolean;
  readonly programs: () => Readonly<Record<string, string>>;
}

const WAYS: readonly Way[] = [
  {
    way: 'docker',
    isThere: provided('SLUICE_TEST_DOCKER_HOST') !== '',
    programs: () => ({ docker: WITHOUT_BUILD + dockerScript(project) }),
  },
  { way: 'npm', isThere: redisServer !== '', programs: () => redisPrograms(redisServer) },
];

const isRun = ({ notRun }: ShellBlock): boolean => notRun === undefined;
const blocksOf = (name: string): ShellBlock[] =>
  shellBlocks(PAGE).filter((block) => isRun(block) && [undefined, name].includes(block.way));

test('each way of the tutorial has commands of its own', () => {
  const ways = new Set(shellBlocks(PAGE).map(({ way }) => way));
  expect([...ways].sort()).toEqual([...WAYS.map(({ way }) => way), undefined]);
});

describe.each(WAYS)('the tutorial with $way', ({ way, isThere, programs }) => {
  const folder = useTemporaryFolder();
  // `npm test` says which program is missing.
  const run = isThere && python !== '' ? test : test.skip;

  let session: ShellSession | undefined;
  /** Whether each step so far has printed what the page says. After one that has not, a later one could wait forever. */
  let isOnTrack = true;

  /** Starts the shell before its first command, so that nothing is started if all commands are skipped. */
  async function shell(): Promise<ShellSession> {
    if (session) return session;
    if (way === 'docker') await buildImage();
    const adminPort = String(await freePort());
    session = await ShellSession.start({
      folder,
      programs: {
        ...programs(),
        python3: `exec '${python}' "$@"`,
      },
      environment: {
        ...DOCKER_VARIABLES,
        PYTHONPATH: join(ROOT, 'clients/python/src'),
        PYTHONDONTWRITEBYTECODE: '1',
      },
      // With windows of an hour no step begins a new one, however slow the machine is.
      replaced: { 8151: adminPort, 60000: '3600000' },
    });
    return session;
  }

  afterAll(async () => {
    await session?.end();
    if (session && way === 'docker') {
      await compose({ COMPOSE_PROJECT_NAME: project }, 'down', '--volumes');
    }
  }, START_TIMEOUT_MILLIS);

  run.each(blocksOf(way))(
    `${PAGE}:$line prints what the page says`,
    async (block: ShellBlock) => {
      expect(isOnTrack).toBe(true);
      isOnTrack = false;
      const { printed, expected } = await (await shell()).run(block);
      expect(printed).toBe(expected);
      isOnTrack = true;
    },
    START_TIMEOUT_MILLIS,
  );
});
