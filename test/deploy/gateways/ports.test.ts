import { readdirSync } from 'node:fs';

import { ROOT } from '../repository-files.js';
import { shippedFile } from './shipped-file.js';

/** The ports of Sluice itself: those of checks, of the administrator, and of gRPC. */
const OF_SLUICE = ['8080', '8081', '8082'];
/** How each program names a port that it listens on. */
const LISTENS =
  /\blisten (?:127\.0\.0\.1:)?(\d+);|\bbind \S*:(\d+)|^http:\/\/:(\d+) |address: '\S*:(\d+)'|0\.0\.0\.0, port_value: (\d+)/gm;

test('no gateway listens on a port of another one or of Sluice', () => {
  const files = readdirSync(`${ROOT}deploy/gateways`);
  const ports = files.map((file) =>
    [...shippedFile(file).matchAll(LISTENS)].map((found) => found.slice(1).find(Boolean)!),
  );

  const gateways = Object.fromEntries(files.map((file, i) => [file, ports[i]!.length]));
  expect(gateways).toMatchObject({
    Caddyfile: 2,
    'envoy.yaml': 1,
    'haproxy.cfg': 2,
    'nginx.conf': 2,
    'traefik.yml': 2,
  });
  const all = [...ports.flat(), ...OF_SLUICE];
  expect(all).toHaveLength(new Set(all).size);
});
