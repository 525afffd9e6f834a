import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { send } from '../../support/http-client.js';
import { startReplica } from '../../support/replica-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { until } from '../../support/until.js';
import {
  ENVOY_RATELIMIT,
  isEarlyInMinute,
  killEnvoyRatelimit,
  startEnvoyRatelimit,
} from '../grpc/envoy-ratelimit.js';
import { grpcHost } from '../grpc/grpc-host.js';
import { readText, ROOT } from '../repository-files.js';
import { useAppBehind } from '../gateways/app-behind.js';
import { envoyOfEnvoyRatelimit } from '../gateways/envoy.js';
import { startGateway } from '../gateways/gateway.js';

/** The limits that docs/write-rules.md imports. A second would end within the test. */
const LIMITS = /cat > \$folder\/limits\.yaml << 'END'\n(.*?)^END$/ms
  .exec(readText('docs/write-rules.md'))![1]!
  .replaceAll('unit: second', 'unit: hour');
/** The settings with which the page about the switch starts Sluice, apart from its ports and its file. */
const MAX_REQUESTS = /(?<=MAX_REQUESTS=)\d+(?= CONFIG_FILE=\$folder\/rules\.yaml)/.exec(
  readText('docs/from-envoy-ratelimit.md'),
)![0];

/** Requests one after another, and what their client gets, by these limits. */
const EXPECTED: readonly (readonly [path: string, times: number, status: number])[] = [
  ['/login', 5, 200],
  ['/login', 2, 429],
  ['/static/logo.svg', 8, 200],
  // A limit in shadow mode of 2 an hour.
  ['/search', 4, 200],
  ['/', 7, 200],
  // The address has had 5 + 8 + 7 requests of 20 an hour. The denied ones, and those to /search, do not count.
  ['/', 2, 429],
  ['/static/logo.svg', 1, 429],
];

const folder = useTemporaryFolder();
const app = useAppBehind();

/** The statuses that clients get if Envoy asks the service at this address. */
async function statusesBy(service: string): Promise<string[]> {
  const url = await startGateway(envoyOfEnvoyRatelimit(), {
    sluice: service,
    app: app.host,
    folder,
  });
  const statuses: string[] = [];
  for (const [path, times] of EXPECTED) {
    for (let i = 0; i < times; i += 1) {
      statuses.push(`${path} ${(await send(url, 'GET', path)).status}`);
    }
  }
  return statuses;
}

const expected = EXPECTED.flatMap(([path, times, status]) =>
  Array.from({ length: times }, () => `${path} ${status}`),
);

// `npm test` says if Envoy or Envoy's rate limit service is missing.
const describeWithEnvoy = envoyOfEnvoyRatelimit().program === '' ? describe.skip : describe;

describeWithEnvoy('an Envoy that asked its own rate limit service', () => {
  afterEach(killEnvoyRatelimit);

  (ENVOY_RATELIMIT === '' ? test.skip : test)('has these statuses before the switch', async () => {
    const port = await startEnvoyRatelimit(folder, LIMITS);
    await until(isEarlyInMinute);
    expect(await statusesBy(`127.0.0.1:${port}`)).toEqual(expected);
  });

  test('has them after a switch by one command and one address', async () => {
    const limits = join(folder, 'limits.yaml');
    await writeFile(limits, LIMITS);
    const main = join(ROOT, 'dist/main.js');
    const imported = await promisify(execFile)(process.execPath, [
      main,
      'import',
      'envoy-ratelimit',
      limits,
    ]);
    const rules = join(folder, 'rules.yaml');
    await writeFile(rules, imported.stdout);
    const sluice = await startReplica({ MAX_REQUESTS, GRPC_PORT: '0', CONFIG_FILE: rules });

    expect(await statusesBy(await grpcHost(sluice))).toEqual(expected);
  });
});
