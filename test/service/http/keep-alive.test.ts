import { readFile } from 'node:fs/promises';

import { openConnection } from '../../support/raw-http.js';
import { until } from '../../support/until.js';
import { useTls } from '../../support/use-tls.js';
import { useApp } from '../../support/use-apps.js';

const tls = useTls();

const ESTABLISHED = '01';
/** In this kernel's table a socket with nothing to send and this timer waits to ask its peer for a sign of life. */
const KEEP_ALIVE_TIMER = '02';
const TICKS_PER_SECOND = 100;

/** The timers of the connections that a port of this machine has accepted: their kinds, and the seconds left. */
async function timersOf(url: string): Promise<{ kind: string; seconds: number }[]> {
  const port = Number(new URL(url).port).toString(16).toUpperCase().padStart(4, '0');
  const table = await readFile('/proc/net/tcp', 'utf8');
  return table
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local, , state]) => local?.endsWith(`:${port}`) && state === ESTABLISHED)
    .map(([, , , , , timer = '']) => {
      const [kind = '', ticks = ''] = timer.split(':');
      return { kind, seconds: Number.parseInt(ticks, 16) / TICKS_PER_SECOND };
    });
}

describe.each([
  ['HTTP', () => ({})],
  ['HTTPS', () => tls.settings],
])('a host that vanishes (%s)', (_name, settings) => {
  const app = useApp(() => ({ ...settings(), ADMIN_PORT: '0' }));

  test.each([
    ['service', () => app.url],
    ['admin', () => app.adminUrl],
  ])('is noticed within a minute on the %s port: TCP asks after 45 s', async (_port, url) => {
    const connection = await openConnection(url().replace('https:', 'http:'));
    const [timer] = await until(async () => {
      const timers = await timersOf(url());
      return timers.length > 0 && timers;
    });
    connection.disconnect();

    expect(timer!.kind).toBe(KEEP_ALIVE_TIMER);
    expect(timer!.seconds).toBeLessThanOrEqual(45);
  });
});
