import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { PATIENT_STORE } from '../../support/both-limiters.js';
import { IS_FULL } from '../../support/extent.js';
import { provided } from '../../support/provided.js';
import { killReplicas, startReplica } from '../../support/replica-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { tokenFile } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';

const CONFIGURATION = fileURLToPath(new URL('schemathesis.toml', import.meta.url));
const TIMEOUT_MILLIS = 10 * 60 * 1000;
const TOKEN = 'token-for-everything';
/** Checks may name groups. Those that name lanes are errors. */
const RULES = { keys: [{ key_pattern: '.*', key_pattern_is_regex: true, queue: { fair: true } }] };

const run = promisify(execFile);
const program = provided('SLUICE_TEST_SCHEMATHESIS');
// `scripts/lib/find-schemathesis.mjs` says if it is missing.
const describeWithSchemathesis = program === '' ? describe.skip : describe;

describeWithSchemathesis('valid and invalid requests generated from the document', () => {
  const redis = useRedis();
  const folder = useTemporaryFolder();
  afterEach(killReplicas);

  /** The output of schemathesis for a service with these settings, or its error. */
  async function reportOn(
    settings: Readonly<Record<string, string>>,
    ...options: string[]
  ): Promise<unknown> {
    const config = join(folder, 'rules.json');
    await writeFile(config, JSON.stringify(RULES));
    const { url } = await startReplica({ ...settings, CONFIG_FILE: config });
    const words = ['--no-color', `--config-file=${CONFIGURATION}`, 'run', ...options];
    const report = await run(program, [...words, `${url}/openapi.json`], { cwd: folder }).catch(
      (error: unknown) => error as { stdout: string },
    );
    return report.stdout;
  }

  // Of the two services the other has more: tokens, and a store. So this one is asked only at full extent.
  if (IS_FULL) {
    test(
      'get answers that match the document, from the embedded limiter',
      async () => {
        expect(await reportOn({})).toContain('No issues found');
      },
      TIMEOUT_MILLIS,
    );
  }

  test(
    'get answers that match the document, from the Redis limiter, with tokens and the older headers',
    async () => {
      const scopes = ['check', 'release', 'debug', 'configure'];
      const settings = {
        ...PATIENT_STORE,
        REDIS_URL: redis.url,
        KEY_PREFIX: `${uniqueKey()}:`,
        RATE_LIMIT_HEADERS: 'legacy',
        AUTH_TOKENS_FILE: await tokenFile(folder, { name: 'all', token: TOKEN, scopes }),
      };

      expect(await reportOn(settings, '--header', `Authorization: Bearer ${TOKEN}`)).toContain(
        'No issues found',
      );
    },
    TIMEOUT_MILLIS,
  );
});
