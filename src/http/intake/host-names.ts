import { isIP } from 'node:net';

import { isLoopback } from '../../common/loopback.js';
import type { Settings } from '../../config/settings.js';
import { serviceError } from '../../service/service-error.js';

/** A name or an address, which has brackets if it is of IPv6, and a port. */
const HOST = /^(\[[^\]]*\]|[^:]*)(?::\d*)?$/;

/** @throws ServiceError HOST_NOT_ALLOWED */
export type CheckHostName = (host: string | undefined) => void;

type HostSettings = Pick<Settings, 'HOST' | 'ALLOWED_HOSTS' | 'AUTH_TOKENS_FILE'>;

/**
 * The names by which the service may be asked for. A page that has its own name resolve to the address of the service
 * (DNS rebinding) is of the same origin to its browser: only the `Host` header tells. It can't do so with an address for
 * a name.
 * @returns undefined if any name will do
 */
export function hostNameCheck(settings: HostSettings): CheckHostName | undefined {
  const { HOST: address, ALLOWED_HOSTS: listed } = settings;
  const isLocal = isLoopback(address);
  const hasTokens = settings.AUTH_TOKENS_FILE !== undefined;
  if (listed === undefined && (!isLocal || hasTokens)) return undefined;
  const names = new Set(listed?.map((name) => name.toLowerCase()));
  if (names.has('*')) return undefined;
  const isAllowed = (name: string): boolean =>
    isLoopback(name) || names.has(name) || (!isLocal && isIP(name) !== 0);

  // Nearly all requests have the same as the one before.
  let last: string | undefined;
  return (host) => {
    // Browsers send one always.
    if (host === last || host === undefined) return;
    if (!isAllowed(nameIn(host))) throw serviceError('HOST_NOT_ALLOWED', { host });
    last = host;
  };
}

/** The name in a `Host` header; empty if there is none. */
function nameIn(host: string): string {
  const name = HOST.exec(host)?.[1] ?? '';
  return name.replace(/^\[|\]$/g, '').toLowerCase();
}
