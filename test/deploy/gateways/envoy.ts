import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { provided } from '../../support/provided.js';
import { withReplacements } from '../replacements.js';
import { readText } from '../repository-files.js';
import type { Gateway, Place } from './gateway.js';
import type { Replacements } from './shipped-file.js';

/**
 * Envoy with `deploy/gateways/envoy.yaml`. `more` are changes besides the surroundings. Its Sluice may be several
 * replicas, separated by commas.
 */
export function envoy(more: Replacements = []): Gateway {
  return envoyWith('deploy/gateways/envoy.yaml', (place) => [
    [address('0.0.0.0:8185'), address(`127.0.0.1:${place.port}`)],
    ...neighbours(place),
    ...rights(place),
    ...more,
  ]);
}

/** Envoy with `deploy/gateways/envoy-tokens.yaml`. */
export function envoyOfTokens(): Gateway {
  return envoyWith('deploy/gateways/envoy-tokens.yaml', (place) => [
    [address('0.0.0.0:8186'), address(`127.0.0.1:${place.port}`)],
    ...neighbours(place),
    ...rights(place),
  ]);
}

/** Envoy with what Envoy Gateway makes of `deploy/gateways/envoy-gateway.yaml`. */
export function envoyOfEnvoyGateway(): Gateway {
  return envoyWith(TRANSLATED, (place) => [
    [address('0.0.0.0:8187'), address(`127.0.0.1:${place.port}`)],
    ...neighbours(place),
  ]);
}

/** See {@link envoyOfEnvoyGateway}. */
export const TRANSLATED = 'test/deploy/gateways/envoy-gateway/translated.yaml';

/** Envoy as it asked another rate limit service, with the address of that service replaced. */
export function envoyOfEnvoyRatelimit(): Gateway {
  return envoyWith('test/deploy/gateways/envoy-ratelimit/envoy.yaml', (place) => [
    [address('0.0.0.0:8188'), address(`127.0.0.1:${place.port}`)],
    [endpoint('app:8080'), endpoint(place.app)],
    [endpoint('ratelimit:8081'), endpoint(place.sluice)],
  ]);
}

/** @param path of its configuration, in the project */
function envoyWith(path: string, replacements: (place: Place) => Replacements): Gateway {
  return {
    name: 'Envoy',
    program: provided('SLUICE_TEST_ENVOY'),
    configure: async (place) => {
      const file = join(place.folder, 'envoy.yaml');
      await writeFile(file, withReplacements(path, readText(path), replacements(place)));
      // With hot restart, several Envoys on a machine would share its resources.
      return ['--disable-hot-restart', '--log-level', 'warn', '--config-path', file];
    },
  };
}

function neighbours({ sluice, app }: Place): Replacements {
  return [
    [endpoint('app:8080'), endpoint(app)],
    [
      `- endpoint:\n                  { address: ${address('sluice-grpc:8082')} }`,
      sluice.split(',').map(endpoint).join('\n              '),
    ],
  ];
}

function rights({ isOpen, authorization }: Place): Replacements {
  const metadata = 'initial_metadata: [{ key: authorization, value: Bearer ... }]';
  return [
    ['&deny true', `&deny ${String(isOpen !== true)}`],
    [`# ${metadata}`, authorization ? metadata.replace('Bearer ...', authorization) : ''],
  ];
}

function endpoint(host: string): string {
  return `- endpoint: { address: ${address(host)} }`;
}

function address(host: string): string {
  const [name, port] = host.split(':');
  return `{ socket_address: { address: ${name!}, port_value: ${port!} } }`;
}
