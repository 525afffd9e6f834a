import { isIP } from 'node:net';

import { isLoopback } from '../../service/callers/open-access.js';
import type { Settings } from '../../config/settings.js';
import { serviceError } from '../../service/errors.js';

/** A name or an address (of IPv6 in brackets), and a port. */
const HOST = /^(\[[^\]]*\]|[^:]*)(?::\d*)?$/;

/**
 * Checks the name that a request uses for the service. If a page's own name resolves to the address of the service (DNS
 * rebinding), the browser takes both for the same origin, and only the `Host` header shows it. An address in `Host` is
 * safe, since rebinding needs a name.
 * @returns a function that throws HOST_NOT_ALLOWED; undefined if every name is allowed
 */
export function hostNameCheck(
  settings: Pick<Settings, 'HOST' | 'ALLOWED_HOSTS' | 'AUTH_TOKENS_FILE'>,
): ((host: string | undefined) => void) | undefined {
  const { HOST: address, ALLOWED_HOSTS: listed } = settings;
  const isLocal = isLoopback(address);
  const hasTokens = settings.AUTH_TOKENS_FILE !== undefined;
  if (listed === undefined && (!isLocal || hasTokens)) return undefined;
  const names = new Set(listed?.map((name) => name.toLowerCase()));
  if (names.has('*')) return undefined;
  const isAllowed = (name: string): boolean =>
    isLoopback(name) || names.has(name) || (!isLocal && isIP(name) !== 0);

  // Nearly all requests have the same name as the request before.
  let last: string | undefined;
  return (host) => {
    // Browsers always send the header.
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
