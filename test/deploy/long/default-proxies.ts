import { mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { freePort } from '../../support/free-port.js';
import { nginxProgram } from '../../support/describe-with-nginx.js';
import { provided } from '../../support/provided.js';
import { startGatewayProcess } from '../gateways/gateway-process.js';

/** A load balancer in front of replicas, whose configuration sets no time limit of its own. */
export interface DefaultProxy {
  readonly name: string;
  /** The path of its program; empty if it is missing. */
  readonly program: string;
  /** The text of its configuration, and the arguments of the program with it. */
  readonly configure: (
    place: Place,
  ) => readonly [text: string, args: (file: string) => readonly string[]];
}

interface Place {
  readonly folder: string;
  readonly port: number;
  /** Hosts with ports. */
  readonly replicas: readonly string[];
}

/** After a minute without a byte of an answer it answers 504. */
const NGINX: DefaultProxy = {
  name: 'nginx',
  program: nginxProgram(),
  configure: ({ folder, port, replicas }) => [
    `
    daemon off;
    pid ${join(folder, 'nginx.pid')};
    error_log stderr;
    events {}
    http {
      access_log off;
      client_body_temp_path ${join(folder, 'body')};
      proxy_temp_path ${join(folder, 'proxy')};
      fastcgi_temp_path ${join(folder, 'fastcgi')};
      uwsgi_temp_path ${join(folder, 'uwsgi')};
      scgi_temp_path ${join(folder, 'scgi')};
      upstream replicas { ${replicas.map((replica) => `server ${replica};`).join(' ')} }
      server {
        listen 127.0.0.1:${port};
        location / { proxy_pass http://replicas; }
      }
    }`,
    (file) => ['-p', folder, '-e', 'stderr', '-c', file],
  ],
};

/** It has no time limits built in. These are of the file that its packages install: 50 s for an answer. */
const HAPROXY: DefaultProxy = {
  name: 'HAProxy',
  program: provided('SLUICE_TEST_HAPROXY'),
  configure: ({ port, replicas }) => [
    `
defaults
  mode http
  timeout connect 5000
  timeout client 50000
  timeout server 50000
frontend checks
  bind 127.0.0.1:${port}
  default_backend replicas
backend replicas
${replicas.map((replica, index) => `  server replica${index} ${replica} check`).join('\n')}
`,
    (file) => ['-f', file],
  ],
};

/** It answers 504 to a request that takes 15 s. */
const ENVOY: DefaultProxy = {
  name: 'Envoy',
  program: provided('SLUICE_TEST_ENVOY'),
  configure: ({ port, replicas }) => [
    JSON.stringify({
      static_resources: {
        listeners: [
          {
            address: socketAddress(`127.0.0.1:${port}`),
            filter_chains: [
              {
                filters: [
                  typed('network.http_connection_manager.v3.HttpConnectionManager', {
                    stat_prefix: 'checks',
                    http_filters: [typed('http.router.v3.Router')],
                    route_config: {
                      virtual_hosts: [
                        {
                          name: 'replicas',
                          domains: ['*'],
                          routes: [{ match: { prefix: '/' }, route: { cluster: 'replicas' } }],
                        },
                      ],
                    },
                  }),
                ],
              },
            ],
          },
        ],
        clusters: [
          {
            name: 'replicas',
            load_assignment: {
              cluster_name: 'replicas',
              endpoints: [
                {
                  lb_endpoints: replicas.map((replica) => ({
                    endpoint: { address: socketAddress(replica) },
                  })),
                },
              ],
            },
          },
        ],
      },
    }),
    (file) => ['--disable-hot-restart', '--log-level', 'warn', '--config-path', file],
  ],
};

export const DEFAULT_PROXIES: readonly DefaultProxy[] = [NGINX, HAPROXY, ENVOY];

/** Starts a proxy in front of replicas. @returns its URL */
export async function startDefaultProxy(
  { name, program, configure }: DefaultProxy,
  replicas: readonly string[],
  parent: string,
): Promise<string> {
  const folder = await mkdtemp(join(parent, `${name}-`));
  const port = await freePort();
  const file = join(folder, name === 'Envoy' ? 'configuration.json' : 'configuration');
  const [text, args] = configure({ folder, port, replicas });
  await writeFile(file, text);
  await startGatewayProcess(program, args(file), { folder, port });
  return `http://127.0.0.1:${port}`;
}

function socketAddress(host: string): object {
  const [address, port] = host.split(':');
  return { socket_address: { address, port_value: Number(port) } };
}

function typed(type: string, fields: object = {}): object {
  const name = `envoy.extensions.filters.${type}`;
  return { name, typed_config: { '@type': `type.googleapis.com/${name}`, ...fields } };
}
