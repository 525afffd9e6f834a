import { caddy } from '../gateways/caddy.js';
import {
  ADDRESS,
  ANY,
  BY_ADDRESS,
  type Case,
  describeGateway,
  SLASHED,
} from '../gateways/gateway-tests.js';
import { haproxy } from '../gateways/haproxy.js';
import { traefik } from '../gateways/traefik.js';

/** The gateways besides nginx and Envoy, whose tests are in test/deploy/gateways. */
const CASES: readonly Case[] = [
  {
    gateway: haproxy,
    keys: BY_ADDRESS,
    showsQuota: true,
    limitsSilence: true,
    keyOf: [
      [SLASHED, `client:${SLASHED}`],
      [ANY, ADDRESS],
    ],
  },
  {
    gateway: caddy,
    keys: BY_ADDRESS,
    limitsSilence: true,
    keyOf: [
      [SLASHED, ADDRESS],
      [ANY, ADDRESS],
    ],
  },
  { gateway: traefik, keys: { plain: 'api', waiting: 'reports' }, asksHealth: true, keyOf: [] },
];

for (const gateway of CASES) describeGateway(gateway);
