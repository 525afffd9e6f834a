import { get } from 'node:http';
import { get as getOverTls } from 'node:https';

import { parseSettings } from './config/settings.js';

const TIMEOUT_MILLIS = 3000;
/** The loopback addresses of a service that listens on all addresses. */
const LOOPBACK: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

/**
 * The image's HEALTHCHECK, since the image has no shell and no curl. Exits with 0 if the replica of this
 * environment answers `GET /healthz`, on any port and protocol, else with 1.
 */
function checkHealth(environment: NodeJS.ProcessEnv): void {
  const { HOST, PORT, TLS_CERT_FILE } = parseSettings(environment);
  const options = {
    host: LOOPBACK[HOST] ?? HOST,
    port: PORT,
    path: '/healthz',
    timeout: TIMEOUT_MILLIS,
  };
  const request =
    TLS_CERT_FILE === undefined
      ? get(options)
      : // The request is sent to an address, but the certificate has a host name.
        getOverTls({ ...options, rejectUnauthorized: false });
  request
    .on('response', ({ statusCode }) => process.exit(statusCode === 200 ? 0 : 1))
    .on('timeout', () => request.destroy(new Error(`no answer within ${TIMEOUT_MILLIS} ms`)))
    .on('error', ({ message }) => {
      process.stderr.write(`${message}\n`);
      process.exit(1);
    });
}

checkHealth(process.env);
