import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { SluiceClient } from '../../../src/client/index.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useTls } from '../../support/use-tls.js';
import { useApp } from '../../support/use-apps.js';

const EXAMPLE = fileURLToPath(new URL('../../../clients/node/examples/check.mjs', import.meta.url));

const tls = useTls();
const app = useApp(() => ({ ...tls.settings, WINDOW_MILLIS: '3600000' }));

test('the client asks over HTTPS if Node trusts the certificate', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [EXAMPLE], {
    env: {
      PATH: process.env.PATH,
      SLUICE_URL: app.url,
      NODE_EXTRA_CA_CERTS: tls.authority.caFile,
    },
  });

  expect(stdout).toBe('first: true second: false\nafter a release: true\n');
});

test('the client fails if Node does not trust the certificate', async () => {
  await expect(new SluiceClient(app.url).check(uniqueKey())).rejects.toMatchObject({
    name: 'SluiceUnavailableError',
    cause: { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' },
  });
});
