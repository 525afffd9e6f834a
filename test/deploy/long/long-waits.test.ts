import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { SluiceClient, type WaitProgress } from '../../../clients/node/src/index.js';
import { freePort } from '../../support/free-port.js';
import { approve, send } from '../../support/http-client.js';
import { provided } from '../../support/provided.js';
import { killReplicas, startReplica } from '../../support/replica-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';
import { killGateways, startGatewayProcess } from '../gateways/gateway-process.js';

const WAIT_MILLIS = 5 * 60_000;
/** For all that is done besides the wait. */
const OTHER_MILLIS = 60_000;
const ENVOY = provided('SLUICE_TEST_ENVOY');

const folder = useTemporaryFolder();
const redis = useRedis();
afterAll(async () => {
  await killGateways();
  await killReplicas();
});

function socketAddress(host: string): object {
  const [address, port] = host.split(':');
  return { socket_address: { address, port_value: Number(port) } };
}

function typed(type: string, fields: object): object {
  const name = `envoy.extensions.filters.${type}`;
  return { name, typed_config: { '@type': `type.googleapis.com/${name}`, ...fields } };
}

/** The configuration of an Envoy in front of replicas, which sets no time limit of its own. */
function configuration(port: number, hosts: readonly string[]): object {
  const routes = [{ match: { prefix: '/' }, route: { cluster: 'replicas' } }];
  const manager = typed('network.http_connection_manager.v3.HttpConnectionManager', {
    stat_prefix: 'checks',
    http_filters: [typed('http.router.v3.Router', {})],
    route_config: { virtual_hosts: [{ name: 'replicas', domains: ['*'], routes }] },
  });
  const address = socketAddress(`127.0.0.1:${port}`);
  const endpoints = hosts.map((host) => ({ endpoint: { address: socketAddress(host) } }));
  const assignment = { cluster_name: 'replicas', endpoints: [{ lb_endpoints: endpoints }] };
  return {
    static_resources: {
      listeners: [{ address, filter_chains: [{ filters: [manager] }] }],
      clusters: [{ name: 'replicas', load_assignment: assignment }],
    },
  };
}

// By default Envoy answers 504 to a request that takes 15 s. Those of other proxies may take longer than the client's.
// `npm test` says if Envoy is missing.
(ENVOY === '' ? test.skip : test)(
  'behind Envoy, with its default time limits, a wait of five minutes ends with its approval',
  async () => {
    const settings = {
      REDIS_URL: redis.url,
      WINDOW_MILLIS: String(WAIT_MILLIS),
      MAX_REQUESTS: '1',
    };
    const replicas = await Promise.all([startReplica(settings), startReplica(settings)]);
    const replica = replicas[0].url;
    const port = await freePort();
    const file = join(folder, 'configuration.json');
    const hosts = replicas.map(({ url }) => new URL(url).host);
    await writeFile(file, JSON.stringify(configuration(port, hosts)));
    const args = ['--disable-hot-restart', '--log-level', 'warn', '--config-path', file];
    await startGatewayProcess(ENVOY, args, { folder, port });

    const key = uniqueKey();
    await approve(replica, key);
    const progress: WaitProgress[] = [];
    const client = new SluiceClient({ url: `http://127.0.0.1:${port}` });
    const decision = await client.wait(key, { onProgress: (place) => progress.push(place) });

    expect(decision).toMatchObject({ approved: true });
    expect(progress).toContainEqual(expect.objectContaining({ position: 1 }));
    const debug = await send(replica, 'GET', `/debug/${key}`);
    expect(debug.json()).toMatchObject({ NumApprovedThisWindow: 1, NumWaiting: 0 });
  },
  WAIT_MILLIS + OTHER_MILLIS,
);
