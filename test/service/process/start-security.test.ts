import { join } from 'node:path';

import {
  killReplicas,
  type LogLine,
  startFailingReplica,
  startReplica,
} from '../../support/replica-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { tokenFile } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useTls } from '../../support/use-tls.js';

const tls = useTls();
const folder = useTemporaryFolder();
afterEach(killReplicas);

describe('a replica that can not start', () => {
  async function expectOneLine(settings: Record<string, string>, line: string): Promise<void> {
    expect(await startFailingReplica(settings)).toEqual({
      code: 1,
      stdout: '',
      stderr: `${line}\n`,
    });
  }

  test.each(['AUTH_TOKENS_FILE', 'TLS_CERT_FILE', 'TLS_KEY_FILE'])(
    'because the file of %s is missing says so in one line',
    async (name) => {
      const settings = name.startsWith('TLS') ? tls.settings : {};
      const path = join(folder, uniqueKey());

      await expectOneLine(
        { ...settings, [name]: path },
        `${name}: got "${path}" (ENOENT), takes a file to read`,
      );
    },
  );

  test('because of a wrong token says so in one line, and does not show it', async () => {
    const path = await tokenFile(folder, {
      name: 'billing',
      token: 'too-short',
      scopes: ['check'],
    });

    await expectOneLine(
      { AUTH_TOKENS_FILE: path },
      `AUTH_TOKENS_FILE: got "${path}" ([0].token must have at least 16 characters), takes a JSON list of tokens`,
    );
  });
});

test('watching files does not hold a replica that stops', async () => {
  const path = await tokenFile(folder, {
    name: 'billing',
    token: 'token-of-billing',
    scopes: ['check'],
  });
  const replica = await startReplica({ ...tls.settings, AUTH_TOKENS_FILE: path, ADMIN_PORT: '0' });

  expect(await replica.kill('SIGTERM')).toBe(0);
  expect(replica.log.map(({ msg }) => msg)).toEqual(['serving', 'stopping', 'stopped']);
});

describe('a replica on a public address', () => {
  const HOST = '0.0.0.0';
  const isWarning = ({ level }: LogLine): boolean => level === 'warn';

  test('warns once at the start about endpoints that are open without tokens', async () => {
    const replica = await startReplica({ HOST });
    await replica.kill('SIGTERM');

    expect(replica.log.filter(isWarning)).toMatchObject([
      {
        host: HOST,
        open: ['checks', 'releases', 'overrides of limits', '/debug', '/ui', '/metrics'],
        set: 'AUTH_TOKENS_FILE',
        msg: 'no authentication configured',
      },
    ]);
  });
});
