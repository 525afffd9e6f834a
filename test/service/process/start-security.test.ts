import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';

import {
  killReplicas,
  type LogLine,
  startFailingReplica,
  startReplica,
} from '../../support/replica-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { tokenFile, writeTokens } from '../../support/tokens.js';
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

  test.each([
    ['empty', '', '(empty), takes a file with content'],
    [
      'half written',
      '[{"name": "bil',
      '(it is not JSON at position 14), takes a JSON list of tokens',
    ],
    ['an object', '{}', '(it must be a list), takes a JSON list of tokens'],
  ])('because its tokens file is %s says so in one line', async (_how, text, complaint) => {
    const path = join(folder, uniqueKey());
    await writeTokens(path, text);

    await expectOneLine({ AUTH_TOKENS_FILE: path }, `AUTH_TOKENS_FILE: got "${path}" ${complaint}`);
  });

  test("because the key is another certificate's says so in one line", async () => {
    const { keyFile } = await tls.authority.issueServerCertificate();

    await expectOneLine(
      { ...tls.settings, TLS_KEY_FILE: keyFile },
      `TLS_KEY_FILE: got "${keyFile}", takes the private key of the certificate in TLS_CERT_FILE`,
    );
  });

  test('because its admin port is taken says so in one line', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const port = String((other.address() as AddressInfo).port);
    const { code, stderr } = await startFailingReplica({ ADMIN_PORT: port });
    other.close();

    expect(code).toBe(1);
    expect(stderr).toBe(
      `ADMIN_PORT: got ${port} (EADDRINUSE), takes a port that no other process listens on\n`,
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

  test('does not warn if there are tokens', async () => {
    const entry = { name: 'billing', token: 'token-of-billing', scopes: ['check'] };
    const replica = await startReplica({ HOST, AUTH_TOKENS_FILE: await tokenFile(folder, entry) });
    await replica.kill('SIGTERM');

    expect(replica.log.filter(isWarning)).toEqual([]);
  });
});
