import { join } from 'node:path';

import { nginxProgram } from '../../support/describe-with-nginx.js';
import { type Gateway, type Place, writeFileHere } from './gateway.js';
import type { Replacements } from './shipped-file.js';

const TEMPORARY = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];

/** nginx with `deploy/gateways/nginx.conf`. `more` are changes besides the surroundings. */
export function nginx(more: Replacements = []): Gateway {
  return {
    name: 'nginx',
    program: nginxProgram(),
    configure: async (place) => {
      const file = await writeFileHere(place, 'nginx.conf', [...replacements(place), ...more]);
      return ['-p', place.folder, '-e', 'stderr', '-c', file];
    },
  };
}

function replacements(place: Place): Replacements {
  const { port, innerPort, sluice, app, folder, isOpen, authorization } = place;
  const header = 'proxy_set_header Authorization';
  const temporary = TEMPORARY.map((name) => `${name}_temp_path ${join(folder, name)};`);
  const away = 'location @sluice_away {\n      return';
  return [
    ['/dev/stderr warn;', `stderr warn; pid ${join(folder, 'nginx.pid')}; daemon off;`],
    ['access_log off;', `access_log off; ${temporary.join(' ')}`],
    ['server sluice:8080;', `server ${sluice};`],
    ['server app:8080;', `server ${app};`],
    ['listen 8181;', `listen 127.0.0.1:${port};`],
    ['listen 127.0.0.1:8191;', `listen 127.0.0.1:${innerPort};`],
    ['127.0.0.1:8191/rate/$sluice_key;', `127.0.0.1:${innerPort}/rate/$sluice_key;`],
    ['127.0.0.1:8191/rate/$sluice_key?', `127.0.0.1:${innerPort}/rate/$sluice_key?`],
    [`# ${header} "Bearer ...";`, authorization ? `${header} "${authorization}";` : ''],
    [`${away} 403;`, `${away} ${isOpen ? 204 : 403};`],
  ];
}
