import { send } from '../support/http-client.js';

/** The host of targets in absolute form: HAProxy rejects other hosts. */
const HOST = 'sluice';

/** The paths that clients need from a load balancer. */
export const PUBLISHED = ['/rate/key', '/rate/key?canWait=true', '/healthz', '/readyz'];

/** Internal paths, in all forms that a replica might accept. */
export const NOT_PUBLISHED = [
  '/debug',
  '/debug/key',
  '/debug?key',
  '/metrics',
  '/ui',
  '/ui/data',
  '/ui/try/check?key=key',
  '/metrics?name',
  '/openapi.json',
  '/docs',
  '//debug',
  '/%64ebug',
  '/./debug',
  '/debug/../rate/key',
  '/debug/%2e%2e/rate/key',
  '/healthz/../debug',
  'http://sluice/debug',
  'http://sluice/metrics',
  'http://sluice/debug/../rate/key',
];

/** The status of `GET` of each target, which is sent unchanged. */
export async function statusesOf(
  url: string,
  targets: readonly string[],
): Promise<Record<string, number>> {
  const statuses = targets.map(async (target) => {
    const { status } = await send(url, 'GET', target, { Host: HOST });
    return [target, status] as const;
  });
  return Object.fromEntries(await Promise.all(statuses));
}

/** The same status for each target. */
export function allWith(status: number, targets: readonly string[]): Record<string, number> {
  return Object.fromEntries(targets.map((target) => [target, status]));
}
