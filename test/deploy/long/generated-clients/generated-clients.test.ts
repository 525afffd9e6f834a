import { execFile } from 'node:child_process';
import { cp, mkdir } from 'node:fs/promises';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { provided } from '../../../support/provided.js';
import { killReplicas, startReplica } from '../../../support/replica-process.js';
import { useTemporaryFolder } from '../../../support/temporary-folder.js';
import { uniqueKey } from '../../../support/unique-key.js';

/** The compiler may have to load and compile packages. */
const TIMEOUT_MILLIS = 10 * 60 * 1000;
const SETTINGS = { MAX_REQUESTS: '1', WINDOW_MILLIS: '3600000' };
const PYTHON_CLIENT = fileURLToPath(new URL('client.py', import.meta.url));
const GO_CLIENT = fileURLToPath(new URL('go', import.meta.url));

/** What each client gets. It waits until the first approval is released. */
const EXPECTED = {
  denied: [429, 'rate limit exceeded'],
  released: true,
  waited: [200, true],
  hits: 3,
  pauseMillis: 1000,
  checks: [200, 200],
  releases: [200, 200],
};

const run = promisify(execFile);
const python = provided('SLUICE_TEST_OPENAPI_PYTHON');
const oapiCodegen = provided('SLUICE_TEST_OAPI_CODEGEN');
// `npm test` says if one is missing.
const testInPython = python === '' ? test.skip : test;
const testInGo = oapiCodegen === '' ? test.skip : test;

const folder = useTemporaryFolder();
afterEach(killReplicas);

testInPython(
  'a client that openapi-python-client generates checks, waits, releases, holds, pauses and sends bulk requests',
  async () => {
    const { url } = await startReplica(SETTINGS);
    const path = join(folder, 'sluice_client');
    const words = [
      '-m',
      'openapi_python_client',
      'generate',
      '--meta',
      'none',
      '--fail-on-warning',
    ];
    // It formats the client with ruff, which is beside it.
    const env = { ...process.env, PATH: `${dirname(python)}${delimiter}${process.env.PATH ?? ''}` };
    await run(python, [...words, '--url', `${url}/openapi.json`, '--output-path', path], { env });
    const { stdout } = await run(python, [PYTHON_CLIENT, folder, url, uniqueKey()]);

    expect(JSON.parse(stdout)).toEqual(EXPECTED);
  },
  TIMEOUT_MILLIS,
);

testInGo(
  'a client that oapi-codegen generates checks, waits, releases, holds, pauses and sends bulk requests',
  async () => {
    const { url } = await startReplica(SETTINGS);
    const module = join(folder, 'go');
    await cp(GO_CLIENT, module, { recursive: true });
    await mkdir(join(module, 'sluice'));
    const options = ['-generate', 'types,client', '-package', 'sluice', '-o', 'sluice/sluice.go'];
    await run(oapiCodegen, [...options, `${url}/openapi.json`], { cwd: module });
    await run('go', ['build', '-o', 'client', '.'], { cwd: module });
    const { stdout } = await run(join(module, 'client'), [url, uniqueKey()]);

    expect(JSON.parse(stdout)).toEqual(EXPECTED);
  },
  TIMEOUT_MILLIS,
);
