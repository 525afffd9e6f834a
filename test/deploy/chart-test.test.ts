import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { debugState } from '../support/debug-state.js';
import { killReplicas, startReplica } from '../support/replica-process.js';
import { useTemporaryFolder } from '../support/temporary-folder.js';
import { tokenFile } from '../support/tokens.js';
import { useTls } from '../support/use-tls.js';
import { theOne } from './kubernetes-object.js';
import { describeWithDeployTools, renderChart } from './rendered-objects.js';
import { schemaErrors } from './schema-check.js';

const execute = promisify(execFile);
const KEY = 'tenant-test';
const TOKEN = 'token-of-the-test';

const folder = useTemporaryFolder();
const tls = useTls();
afterEach(killReplicas);

/** The end of the pod of `helm test` with this environment. */
async function runTest(environment: Readonly<Record<string, string>>) {
  const pod = theOne(await renderChart({}, { withTests: true }), 'Pod');
  const { containers } = pod.spec as { containers: [{ command: [string, ...string[]] }] };
  const [, ...args] = containers[0].command;
  const env = { SLUICE_KEY: KEY, ...environment };
  try {
    return { code: 0, ...(await execute(process.execPath, args, { env })) };
  } catch (error) {
    return error as { code: number; stdout: string; stderr: string };
  }
}

describeWithDeployTools(['helm'], 'helm test', () => {
  test('runs a pod that is valid, and that no Service or policy selects', async () => {
    const objects = await renderChart({}, { withTests: true });
    const pod = theOne(objects, 'Pod');

    expect(schemaErrors([pod])).toEqual([]);
    expect(pod.metadata).toMatchObject({ annotations: { 'helm.sh/hook': 'test' } });
    const { selector } = theOne(objects, 'Service').spec as { selector: object };
    expect(pod.metadata.labels).not.toMatchObject(selector);
  });

  test.each(['draft', 'legacy', 'off'])(
    'sends a check, waits, and releases, with RATE_LIMIT_HEADERS=%s',
    async (form) => {
      const { url } = await startReplica({ RATE_LIMIT_HEADERS: form });
      const ended = await runTest({ SLUICE_URL: url });

      expect(ended).toMatchObject({ code: 0, stdout: 'checked\nwaited and released\n' });
      const state = await debugState(url, KEY);
      expect([state.NumHeld ?? 0, state.NumWaiting]).toEqual([0, 0]);
    },
  );

  test('works with TLS, tokens, and keys that need a rule', async () => {
    const CONFIG_FILE = join(folder, 'rules.yaml');
    await writeFile(CONFIG_FILE, `keys: [{ key_pattern: ${KEY}, max_requests_per_window: 1 }]`);
    const scopes = ['check', 'release'];
    const AUTH_TOKENS_FILE = await tokenFile(folder, { name: 'test', token: TOKEN, scopes });
    const replica = await startReplica({
      ...tls.settings,
      AUTH_TOKENS_FILE,
      CONFIG_FILE,
      UNKNOWN_KEYS: 'deny',
    });

    const given = { SLUICE_URL: replica.url.replace('http:', 'https:'), SLUICE_TOKEN: TOKEN };
    expect(await runTest(given)).toMatchObject({ code: 0, stderr: '' });
    const refused = await runTest({ ...given, SLUICE_KEY: 'other' });
    expect(refused).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/^POST \/rate\/other\?holdMillis=30000: 403 /) as unknown,
    });
  });

  test('fails if releases do', async () => {
    const AUTH_TOKENS_FILE = await tokenFile(folder, {
      name: 'test',
      token: TOKEN,
      scopes: ['check'],
    });
    const { url } = await startReplica({ AUTH_TOKENS_FILE });
    const { code, stderr } = await runTest({ SLUICE_URL: url, SLUICE_TOKEN: TOKEN });

    expect(code).toBe(1);
    expect(stderr).toContain('lacks the scope release');
  });

  test('fails if no replica answers', async () => {
    const { code, stderr } = await runTest({ SLUICE_URL: 'http://127.0.0.1:1' });

    expect(code).toBe(1);
    expect(stderr).toContain('ECONNREFUSED');
  });
});
