import { BlockList, isIP } from 'node:net';

import type { Logger } from 'pino';

import type { Settings } from '../../config/settings.js';

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** Whether only this machine reaches an address or host name. */
export function isLoopback(host: string): boolean {
  const family = isIP(host);
  if (family === 0) return host.toLowerCase() === 'localhost';
  return loopback.check(host, family === 4 ? 'ipv4' : 'ipv6');
}

/** Warns if other machines can reach the service, and it has no tokens. */
export function warnOfOpenAccess(settings: Settings, logger: Logger): void {
  const { HOST: host, AUTH_TOKENS_FILE: file } = settings;
  if (file !== undefined || isLoopback(host)) return;
  const canOverride =
    settings.REQUESTS_CAN_SET_RATE ||
    settings.REQUESTS_CAN_MOD_QUEUE ||
    settings.REQUESTS_CAN_SET_WINDOW;
  const open = [
    'checks',
    'releases',
    ...(canOverride ? ['overrides of limits'] : []),
    ...(settings.DEBUG_ENDPOINTS ? ['/debug', '/ui'] : []),
    '/metrics',
  ];
  logger.warn({ host, open, set: 'AUTH_TOKENS_FILE' }, 'no authentication configured');
}
