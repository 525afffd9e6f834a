import { provided } from '../../support/provided.js';
import { type Gateway, type Place, writeFileHere } from './gateway.js';
import type { Replacements } from './shipped-file.js';

/**
 * Envoy with `deploy/gateways/envoy.yaml`. `more` are changes besides the surroundings. Its Sluice may be several
 * replicas, separated by commas.
 */
export function envoy(more: Replacements = []): Gateway {
  return {
    name: 'Envoy',
    program: provided('SLUICE_TEST_ENVOY'),
    configure: async (place) => {
      const file = await writeFileHere(place, 'envoy.yaml', [...replacements(place), ...more]);
      // With hot restart, several Envoys on a machine would share its resources.
      return ['--disable-hot-restart', '--log-level', 'warn', '--config-path', file];
    },
  };
}

function replacements(place: Place): Replacements {
  const { port, sluice, app, isOpen, authorization } = place;
  const metadata = 'initial_metadata: [{ key: authorization, value: Bearer ... }]';
  return [
    [address('0.0.0.0:8185'), address(`127.0.0.1:${port}`)],
    [endpoint('app:8080'), endpoint(app)],
    [
      `- endpoint:\n                  { address: ${address('sluice-grpc:8082')} }`,
      sluice.split(',').map(endpoint).join('\n              '),
    ],
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
