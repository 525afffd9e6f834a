import { redisProgram } from '../../support/redis-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { pages } from '../../support/docs/pages.js';
import { type ShellBlock, shellBlocks } from '../../support/docs/shell-blocks.js';
import { redisPrograms, ShellSession } from '../../support/docs/shell-session.js';

/** Their commands need Docker or Helm: test/deploy/commands.test.ts runs them. */
const OF_DEPLOYMENT = ['docs/deploy.md', 'deploy/helm/sluice/README.md'];

const commands = pages()
  .filter((page) => !OF_DEPLOYMENT.includes(page))
  .map((page) => ({ page, blocks: shellBlocks(page).filter(({ notRun }) => !notRun) }))
  .filter(({ blocks }) => blocks.length > 0);

test('the pages with commands are known', () => {
  expect(commands.map(({ page }) => page).sort()).toEqual([
    'README.md',
    'docs/api.md',
    'docs/client.md',
    'docs/configuration.md',
    'docs/dashboard.md',
    'docs/languages.md',
    'docs/operations.md',
    'docs/recipes.md',
    'docs/redis.md',
    'docs/replicas.md',
    'docs/rules.md',
    'docs/security.md',
    'docs/tracing.md',
    'docs/troubleshooting.md',
  ]);
});

describe.each(commands)('the commands of $page', ({ page, blocks }) => {
  const folder = useTemporaryFolder();
  const needsRedis = blocks.some(({ code }) => code.includes('redis-server'));
  const program = redisProgram();
  // `npm test` says if redis-server is missing.
  const run = needsRedis && program === undefined ? test.skip : test;

  let session: ShellSession;
  beforeAll(async () => {
    const programs = program === undefined ? {} : redisPrograms(program);
    session = await ShellSession.start({ folder, programs });
  });
  afterAll(() => session.end());

  run.each(blocks)(`${page}:$line prints what the page says`, async (block: ShellBlock) => {
    const { printed, expected } = await session.run(block);
    expect(printed).toBe(expected);
  });
});
