import { readdir } from 'node:fs/promises';

import { CLIENT_PROGRAM } from '../client/command-line.js';
import { redisProgram } from '../redis-process.js';
import { useTemporaryFolder } from '../temporary-folder.js';
import { pages, ROOT } from './pages.js';
import { isOfDeployment, type ShellBlock, shellBlocks } from './shell-blocks.js';
import { redisPrograms, ShellSession } from './shell-session.js';

/** Its commands need Python: test/deploy/long/tutorial.test.ts runs them. */
const TUTORIAL = 'docs/tutorial.md';

/** The pages whose outputs rules and parameters decide. test/service/docs runs these, and test/deploy the others. */
const OF_RULES_AND_PARAMETERS = [
  'README.md',
  'docs/checks.md',
  'docs/approvals.md',
  'docs/waiting-api.md',
  'docs/errors-and-headers.md',
  'docs/node.md',
  'docs/retries.md',
  'docs/waits.md',
  'docs/command-line.md',
  'docs/settings.md',
  'docs/write-rules.md',
  'docs/rule-fields.md',
  'docs/change-rules.md',
];

/** How many pages run their commands at a time: each has ports of its own, and waits more than it works. */
const AT_A_TIME = 3;

/** Its page is among those that test/deploy runs. */
const PROMETHEUS = process.env.SLUICE_TEST_PROMETHEUS ?? '';
/** As after an installation. */
const CLIENT = `exec '${CLIENT_PROGRAM}' "$@"`;

/** A page with the commands that tests run. */
export interface PageCommands {
  readonly page: string;
  readonly blocks: readonly ShellBlock[];
}

export const PAGES: readonly PageCommands[] = pages()
  .filter((page) => page !== TUTORIAL)
  .map((page) => ({
    page,
    blocks: shellBlocks(page).filter((block) => !block.notRun && !isOfDeployment(block)),
  }))
  .filter(({ blocks }) => blocks.length > 0);

const isOfRules = ({ page }: PageCommands): boolean => OF_RULES_AND_PARAMETERS.includes(page);
export const PAGES_OF_RULES = PAGES.filter(isOfRules);
export const OTHER_PAGES = PAGES.filter((page) => !isOfRules(page));

type Output = Awaited<ReturnType<ShellSession['run']>>;

/** A page whose commands run one after another in a shell of their own. */
class RunningPage {
  #outputs: Promise<Output>[] | undefined;
  #session: ShellSession | undefined;

  constructor(
    readonly commands: PageCommands,
    private readonly folder: string,
  ) {}

  /** Begins with its first command, unless it has begun. */
  start(): void {
    if (this.#outputs) return;
    let last: Promise<unknown> = this.#open();
    this.#outputs = this.commands.blocks.map((block) => {
      const output = last.then(() => this.#session!.run(block));
      // The test of the command gets the error. The next command runs anyway.
      last = output.catch(() => undefined);
      return output;
    });
  }

  output(block: ShellBlock): Promise<Output> {
    return this.#outputs![this.commands.blocks.indexOf(block)]!;
  }

  /** The files that its commands have left, where a reader has the clone. */
  async leftovers(): Promise<string[]> {
    await Promise.allSettled(this.#outputs!);
    const ofProject = await readdir(ROOT);
    const names = await readdir(this.folder);
    return names.filter((name) => !name.startsWith('.') && !ofProject.includes(name));
  }

  async end(): Promise<void> {
    await this.#session?.end();
  }

  async #open(): Promise<void> {
    const program = redisProgram();
    const programs = program === undefined ? {} : redisPrograms(program);
    this.#session = await ShellSession.start({
      folder: this.folder,
      programs: {
        ...programs,
        'sluice-client': CLIENT,
        prometheus: `exec '${PROMETHEUS}' "$@"`,
      },
    });
  }
}

/** Tests that each command of these pages prints what its page says. */
export function describePages(all: readonly PageCommands[]): void {
  // `npm test` says what is missing.
  const missing = [
    ...(redisProgram() === undefined ? ['redis-server'] : []),
    ...(CLIENT_PROGRAM === '' ? ['sluice-client '] : []),
    ...(PROMETHEUS === '' ? ['prometheus --'] : []),
  ];
  const isRun = ({ blocks }: PageCommands): boolean =>
    !blocks.some(({ code }) => missing.some((program) => code.includes(program)));
  for (const { page, blocks } of all.filter((commands) => !isRun(commands))) {
    test.skip.each(blocks)(`${page}:$line prints what the page says`, () => undefined);
  }
  const running = all
    .filter(isRun)
    .map((commands) => new RunningPage(commands, useTemporaryFolder()));

  describe.each(running.map((one, i) => [one.commands.page, one, i] as const))(
    'the commands of %s',
    (page, one, i) => {
      beforeAll(() => {
        for (const next of running.slice(i, i + AT_A_TIME)) next.start();
      });
      afterAll(() => one.end());

      test.each(one.commands.blocks)(`${page}:$line prints what the page says`, async (block) => {
        const { printed, expected } = await one.output(block);
        expect(printed).toBe(expected);
      });

      test(`${page} leaves no file in the clone`, async () => {
        expect(await one.leftovers()).toEqual([]);
      });
    },
  );
  // Those that have begun beside a page, if only its tests are asked for.
  afterAll(() => Promise.all(running.map((one) => one.end())));
}
