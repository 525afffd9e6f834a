import { provided } from '../../support/provided.js';
import { type Gateway, writeFileHere } from './gateway.js';

const SHUT = 'http-request return status 503 content-type application/json string';
const SHUT_WHEN_AWAY = `${SHUT} '{"error":"try again later"}' hdr Retry-After 1 `;

/** HAProxy with `deploy/gateways/haproxy.cfg`. */
export const haproxy: Gateway = {
  name: 'HAProxy',
  program: provided('SLUICE_TEST_HAPROXY'),
  configure: async (place) => {
    const { authorization } = place;
    const lua = await writeFileHere(place, 'haproxy.lua', [
      ["'127.0.0.1', 8192", `'127.0.0.1', ${place.innerPort}`],
      ['AUTHORIZATION = nil', `AUTHORIZATION = ${authorization ? `'${authorization}'` : 'nil'}`],
    ]);
    const file = await writeFileHere(place, 'haproxy.cfg', [
      ['/etc/haproxy/haproxy.lua', lua],
      ['bind :8182', `bind 127.0.0.1:${place.port}`],
      ['bind 127.0.0.1:8192', `bind 127.0.0.1:${place.innerPort}`],
      ['server sluice sluice:8080', `server sluice ${place.sluice}`],
      ['server app app:8080', `server app ${place.app}`],
      [SHUT_WHEN_AWAY, place.isOpen ? `# ${SHUT_WHEN_AWAY}` : SHUT_WHEN_AWAY],
    ]);
    return ['-f', file];
  },
};
