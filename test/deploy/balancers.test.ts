import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { freePort } from '../support/free-port.js';
import { provided } from '../support/provided.js';
import { openConnection } from '../support/raw-http.js';
import { KEEP_ALIVE_TIMER, timersOf } from '../support/tcp-timers.js';
import { useTemporaryFolder } from '../support/temporary-folder.js';
import { until } from '../support/until.js';
import { nginxProgram } from '../support/describe-with-nginx.js';
import { killGateways, startGatewayProcess } from './gateways/gateway-process.js';
import { withReplacements } from './replacements.js';
import { readText } from './repository-files.js';
import { Balancer, killBalancers } from './rolling/balancer.js';

const folder = useTemporaryFolder();
afterAll(async () => {
  await killBalancers();
  await killGateways();
});

const haproxyProgram = provided('SLUICE_TEST_HAPROXY');
const NO_REPLICA = 'http://127.0.0.1:1';

async function startNginx(): Promise<string> {
  return (await Balancer.start(folder, [NO_REPLICA])).url;
}

async function startHaproxy(): Promise<string> {
  const port = await freePort();
  const file = join(folder, 'haproxy.cfg');
  const text = withReplacements('deploy/haproxy.cfg', readText('deploy/haproxy.cfg'), [
    ['bind :8080', `bind 127.0.0.1:${port}`],
    ['bind :8081', `bind 127.0.0.1:${await freePort()}`],
  ]);
  await writeFile(file, text);
  await startGatewayProcess(haproxyProgram, ['-f', file], { folder, port });
  return `http://127.0.0.1:${port}`;
}

describe.each([
  ['nginx.conf', nginxProgram(), startNginx],
  ['haproxy.cfg', haproxyProgram, startHaproxy],
])('deploy/%s', (_file, program, start) => {
  // `npm test` says if a program is missing.
  (program === '' ? test.skip : test)(
    'asks clients for signs of life after 45 s of silence, as a replica does',
    async () => {
      const url = await start();
      const connection = await openConnection(url);
      const timer = await until(async () => {
        const timers = await timersOf(url, 'server');
        return timers.find(({ kind }) => kind === KEEP_ALIVE_TIMER);
      });
      connection.disconnect();

      expect(timer.seconds).toBeLessThanOrEqual(45);
    },
  );
});
