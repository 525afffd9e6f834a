import { join } from 'node:path';

import { withReplacements } from '../replacements.js';
import { readText } from '../repository-files.js';

/** `deploy/nginx.conf` as it ships. */
export function shippedConfiguration(): string {
  return readText('deploy/nginx.conf');
}

/** The values that differ from the shipped file, so that the balancer runs in a test. */
export interface Surroundings {
  readonly port: number;
  /** Host and port of each server behind it. */
  readonly endpoints: readonly string[];
  /** The folder for its files. */
  readonly folder: string;
}

/** A line for each request: its correlation id, its status, and the server that has answered it. */
const ACCESS_FORMAT = '$http_x_correlation_id $status $upstream_addr';
const TEMPORARY = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];

/**
 * The shipped file for these surroundings. The handling of requests is unchanged, but the balancer also logs requests
 * and its own reloads.
 */
export function configurationIn({ port, endpoints, folder }: Surroundings): string {
  const file = (name: string): string => `"${join(folder, name)}"`;
  const servers = endpoints.map((endpoint) => `server ${endpoint};`);
  const temporary = TEMPORARY.map((name) => `${name}_temp_path ${file(name)};`);
  return withReplacements('deploy/nginx.conf', shippedConfiguration(), [
    [
      'error_log /dev/stderr warn;',
      `error_log ${file('error.log')} notice; pid ${file('nginx.pid')};`,
    ],
    [
      'access_log off;',
      [
        `log_format account '${ACCESS_FORMAT}'; access_log ${file('access.log')} account;`,
        ...temporary,
      ].join('\n'),
    ],
    ['resolver 127.0.0.11 valid=2s ipv6=off;', ''],
    ['server sluice:8080 resolve;', servers.join(' ')],
    ['listen 8080 ', `listen 127.0.0.1:${port} `],
  ]);
}
