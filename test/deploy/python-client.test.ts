import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { ERRORS } from '../../src/service/errors.js';
import { readPage, ROOT } from '../support/docs/pages.js';
import { guideBlocks, useGuidesApp } from '../support/docs/guides-app.js';
import { useStandInLlm } from '../support/docs/stand-in-llm.js';
import { provided } from '../support/provided.js';
import { useTemporaryFolder } from '../support/temporary-folder.js';
import { useApp } from '../support/use-apps.js';

const CLIENT = join(ROOT, 'clients/python');
const PAGES = [
  'clients/python/README.md',
  'docs/python.md',
  'docs/limited-requests.md',
  'docs/web-frameworks.md',
];
const TIMEOUT_MILLIS = 120_000;
/** Three thousand waits are cancelled, at three latencies. */
const PYTEST_TIMEOUT_MILLIS = 300_000;

const run = promisify(execFile);
const python = provided('SLUICE_TEST_CLIENT_PYTHON');
// `npm test` says if Python is missing.
const testWithPython = python === '' ? test.skip : test;

const readClient = (path: string) => readFileSync(join(CLIENT, path), 'utf8');

describe('the Python client', () => {
  const folder = useTemporaryFolder();
  const app = useApp(() => ({ WINDOW_MILLIS: '3600000' }));
  const environment = { PATH: process.env.PATH, PYTHONDONTWRITEBYTECODE: '1' };

  /** Resolves with what a module of Python prints, and fails with all of it. */
  async function runModule(...words: string[]): Promise<string> {
    const options = { cwd: CLIENT, env: environment };
    const { stdout } = await run(python, ['-m', ...words], options).catch((error: unknown) => {
      const { stdout: out, stderr } = error as { stdout: string; stderr: string };
      throw new Error(`${out}${stderr}`, { cause: error });
    });
    return stdout;
  }

  testWithPython(
    'passes its tests against a service process',
    async () => {
      expect(await runModule('pytest', '--quiet')).toMatch(/^\d+ passed/m);
    },
    PYTEST_TIMEOUT_MILLIS,
  );

  testWithPython(
    'passes mypy --strict, with its tests',
    async () => {
      expect(await runModule('mypy', '--strict', '--cache-dir', folder)).toContain(
        'no issues found',
      );
    },
    TIMEOUT_MILLIS,
  );

  testWithPython(
    'is installed with its types, and runs the examples of its pages',
    async () => {
      const wheel = ['--no-build-isolation', '--no-deps', '--no-index', '--quiet'];
      await runModule('pip', 'install', ...wheel, '--target', folder, CLIENT);
      expect(readFileSync(join(folder, 'sluice_client/py.typed'), 'utf8')).toBe('');
      const examples = PAGES.flatMap((page) => [
        ...readPage(page).matchAll(
          /^```python\n((?:(?!```).*\n)*)```\n\n```text\n([\s\S]*?)^```$/gm,
        ),
      ]);
      expect(examples).toHaveLength(4);
      for (const [, example = '', printed] of examples) {
        // A server on a unix socket knows no address of a visitor.
        const onSocket = example.replace('ASGITransport(app)', 'ASGITransport(app, client=None)');
        for (const code of new Set([example, onSocket])) {
          writeFileSync(join(folder, 'example.py'), code);
          const { stdout } = await run(python, ['example.py'], {
            cwd: folder,
            env: { ...environment, SLUICE_URL: app.url },
          });
          expect(stdout).toBe(printed);
        }
      }
    },
    TIMEOUT_MILLIS,
  );

  test('knows the errors that have counted nothing, as the Node client does', () => {
    const [, list = ''] =
      /^COUNTED_NOTHING = \(\n([\s\S]*?)^\)/m.exec(readClient('src/sluice_client/_protocol.py')) ??
      [];

    expect([...list.matchAll(/"(.*)"/g)].map(([, code]) => code)).toEqual([
      ...['STORE_FULL', 'KEY_FULL', 'SHUTTING_DOWN'],
      ...['TOO_MANY_WAITERS', 'TOO_MANY_WAITERS_OF_CALLER'],
    ]);
  });

  test('knows the messages after which a wait goes on, as the Node client does', () => {
    const files = ['_kept_wait.py', '_kept_retries.py'].map((name) =>
      readClient(join('src/sluice_client', name)),
    );
    const texts = [...files.join('\n').matchAll(/^(TAKEN_OVER|USED|HANDED_OVER) = "(.*)"$/gm)];

    expect(Object.fromEntries(texts.map(([, name, text]) => [name, text]))).toEqual({
      TAKEN_OVER: ERRORS.PLACE_TAKEN_OVER.message,
      USED: ERRORS.REQUEST_ID_USED.message,
      HANDED_OVER: ERRORS.HANDED_OVER.message,
    });
  });

  describe('an example of the guides', () => {
    const guides = useGuidesApp();
    const vendor = useStandInLlm();

    // test/deploy/long/python-recipes.test.ts runs those that need a worker or serve.
    const examples = guideBlocks().filter(({ notRun }) =>
      notRun?.includes('python-client.test.ts'),
    );

    testWithPython.each(examples)(
      'prints what the page says: $code',
      async ({ code, prints }) => {
        const [program, ...words] = code.trim().split(' ');
        expect(program).toBe('python3');

        const { stdout } = await run(python, words, {
          cwd: ROOT,
          env: {
            ...environment,
            PYTHONPATH: join(CLIENT, 'src'),
            SLUICE_URL: guides.url,
            LLM_URL: vendor.url,
            OPENAI_API_KEY: 'shared',
            OPENAI_BASE_URL: `${vendor.url}/v1`,
            ANTHROPIC_API_KEY: 'shared',
            ANTHROPIC_BASE_URL: vendor.url,
            // It does not ask the internet for prices.
            LITELLM_LOCAL_MODEL_COST_MAP: 'True',
          },
        });

        expect(stdout.trimEnd()).toBe(prints);
        expect(await vendor.stats()).toMatchObject({ refused: 0 });
      },
      TIMEOUT_MILLIS,
    );
  });

  test('has the version and the licence of the service', () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      version: string;
    };
    expect(readClient('pyproject.toml')).toContain(`\nversion = "${version}"\n`);
    expect(readClient('LICENSE')).toBe(readFileSync(join(ROOT, 'LICENSE'), 'utf8'));
  });
});
