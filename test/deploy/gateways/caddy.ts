import { acceptsConnections } from '../../support/accepts-connections.js';
import { provided } from '../../support/provided.js';
import { type Gateway, writeFileHere } from './gateway.js';

/** Caddy with `deploy/gateways/Caddyfile`. */
export const caddy: Gateway = {
  name: 'Caddy',
  program: provided('SLUICE_TEST_CADDY'),
  configure: async (place) => {
    const { port, innerPort, sluice, app, isOpen, authorization } = place;
    const header = 'header_up Authorization';
    const file = await writeFileHere(place, 'Caddyfile', [
      ['http://:8183 {', `http://:${port} {\n\tbind 127.0.0.1`],
      ['http://:8193 {', `http://:${innerPort} {`],
      ['forward_auth 127.0.0.1:8193', `forward_auth 127.0.0.1:${innerPort}`],
      ['sluice:8080 {', `${sluice} {`],
      ['sluice true\n\t\treverse_proxy app:8080', `sluice true\n\t\treverse_proxy ${app}`],
      ['sluice false\n\t\treverse_proxy app:8080', `sluice false\n\t\treverse_proxy ${app}`],
      [`# ${header} "Bearer ..."`, authorization ? `${header} "${authorization}"` : ''],
      ['respond 503', isOpen ? 'respond 204' : 'respond 503'],
    ]);
    return ['run', '--adapter', 'caddyfile', '--config', file];
  },
  // Caddy opens the ports of its servers one after another, in a random order.
  serves: ({ innerPort }) => acceptsConnections(innerPort),
};
