import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { ERRORS } from '../../src/service/errors.js';
import { readPage, ROOT } from '../support/docs/pages.js';
import { shellBlocks } from '../support/docs/shell-blocks.js';
import { provided } from '../support/provided.js';
import { useTemporaryFolder } from '../support/temporary-folder.js';
import { useRedis } from '../support/use-redis.js';
import { useReplicas } from '../support/use-replicas.js';

const PAGE = 'clients/go/README.md';
const CLIENT = join(ROOT, 'clients/go');
/** Go compiles its own packages first, with the race detector. */
const TIMEOUT_MILLIS = 300_000;

const run = promisify(execFile);
const go = provided('SLUICE_TEST_GO');
// `npm test` says if Go is missing.
const testWithGo = go === '' ? test.skip : test;
const start = useReplicas(useRedis());
const folder = useTemporaryFolder();

const readClient = (path: string) => readFileSync(join(CLIENT, path), 'utf8');

/** Starts replicas with the settings of the client's tests. */
function startReplicas(count: number) {
  const CONFIG_FILE = join(CLIENT, 'testdata/rules.yaml');
  return start(count, { MAX_REQUESTS: '1', WINDOW_MILLIS: '3600000', CONFIG_FILE });
}

/** Resolves with what a program prints, and fails with all of it. */
async function output(
  program: string,
  words: readonly string[],
  cwd: string,
  variables: Readonly<Record<string, string>> = {},
): Promise<string> {
  const options = { cwd, env: { ...process.env, ...variables } };
  const { stdout } = await run(program, words, options).catch((error: unknown) => {
    const { stdout: out, stderr } = error as { stdout: string; stderr: string };
    throw new Error(`${out}${stderr}`, { cause: error });
  });
  return stdout;
}

testWithGo(
  'the Go client passes its tests, in which a replica is killed',
  async () => {
    const [ends, second, third] = await startReplicas(3);
    const race = provided('SLUICE_TEST_GO_RACE');
    const words = [
      'test',
      ...(race === '' ? [] : [race]),
      '-count=1',
      '-timeout=4m',
      '-v',
      './...',
    ];
    const printed = await output(go, words, CLIENT, {
      SLUICE_URL: third!.url,
      SLUICE_REPLICAS: [ends!, second!, third!].map(({ url }) => url).join(),
      SLUICE_REPLICA_PID: String(ends!.pid),
    });

    expect(printed).toContain('--- PASS: TestAWaitOutlivesItsReplica');
    expect(printed).not.toContain('--- SKIP');
  },
  TIMEOUT_MILLIS,
);

testWithGo(
  "a module takes the Go client as its page says, and runs the pages' examples",
  async () => {
    const [replica] = await startReplicas(1);
    const module = join(folder, 'your-module');
    mkdirSync(module);
    await output(go, ['mod', 'init', 'your-module'], module);
    const [take] = shellBlocks(PAGE);
    const [, ...words] = take!.code.replace('../sluice/clients/go', CLIENT).split(' ');
    await output(go, words, module);

    const examples = [PAGE, 'docs/go.md'].flatMap((page) => [
      ...readPage(page).matchAll(/^```go\n([\s\S]*?)^```\n\n```text\n([\s\S]*?)^```$/gm),
    ]);
    expect(examples).toHaveLength(3);
    for (const [, example = '', printed] of examples) {
      writeFileSync(join(module, 'main.go'), example);
      const variables = { SLUICE_URL: replica!.url };
      expect(await output(go, ['run', '.'], module, variables)).toBe(printed);
    }
  },
  TIMEOUT_MILLIS,
);

test('the Go client knows the codes of errors, and those that have counted nothing', () => {
  const codes = new Map(
    [...readClient('errors.go').matchAll(/^\t(code\w+) += "(\w+)"$/gm)].map(
      ([, name = '', code = '']) => [name, code],
    ),
  );
  expect(Object.keys(ERRORS)).toEqual(expect.arrayContaining([...codes.values()]));

  const [, names = ''] =
    /^func hasCountedNothing[\s\S]*?\tcase (.*):$/m.exec(readClient('answer.go')) ?? [];
  const uncounted = names.split(', ').map((name) => codes.get(name));
  expect(uncounted.sort()).toEqual(
    [
      ...(['KEY_FULL', 'SHUTTING_DOWN', 'STORE_FULL'] as const),
      ...(['TOO_MANY_WAITERS', 'TOO_MANY_WAITERS_OF_CALLER'] as const),
    ].sort(),
  );
});

test('the Go client has the version and the licence of the service', () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    version: string;
  };

  for (const page of [PAGE, 'docs/go.md']) {
    expect(readPage(page)).toContain(`-require sluice-client@v${version} `);
  }
  expect(readClient('LICENSE')).toBe(readFileSync(join(ROOT, 'LICENSE'), 'utf8'));
});
