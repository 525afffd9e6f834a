import { send } from '../../support/http-client.js';
import { provided } from '../../support/provided.js';
import { type Gateway, writeFileHere } from './gateway.js';

/** Traefik with `deploy/gateways/traefik.yml` and its routes. */
export const traefik: Gateway = {
  name: 'Traefik',
  program: provided('SLUICE_TEST_TRAEFIK'),
  configure: async (place) => {
    const { port, innerPort, sluice, app, isOpen, authorization } = place;
    const routes = await writeFileHere(place, 'traefik-routes.yml', [
      ['127.0.0.1:8194/rate/api', `127.0.0.1:${innerPort}/rate/api`],
      ['127.0.0.1:8194/rate/reports', `127.0.0.1:${innerPort}/rate/reports`],
      ['url: http://app:8080', `url: http://${app}`],
      ['url: http://sluice:8080', `url: http://${sluice}`],
      ['service: sluice\n      #', `service: ${isOpen ? 'sluice-or-pass' : 'sluice'}\n      #`],
      ['# middlewares: [token]', authorization ? 'middlewares: [token]' : ''],
      // No window ends while a test waits.
      ['maxWaitMillis=25000', 'maxWaitMillis=7200000'],
      ['Authorization: Bearer ...', `Authorization: ${authorization ?? 'none'}`],
    ]);
    const file = await writeFileHere(place, 'traefik.yml', [
      ['/etc/traefik/traefik-routes.yml', routes],
      ["':8184'", `'127.0.0.1:${port}'`],
      ["'127.0.0.1:8194'", `'127.0.0.1:${innerPort}'`],
    ]);
    return [`--configFile=${file}`];
  },
  // Traefik starts without routes.
  serves: async ({ innerPort }) => {
    const { headers } = await send(`http://127.0.0.1:${innerPort}`, 'GET', '/rate/');
    return 'x-correlation-id' in headers;
  },
};
