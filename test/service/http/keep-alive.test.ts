import { openConnection } from '../../support/raw-http.js';
import { KEEP_ALIVE_TIMER, timersOf } from '../../support/tcp-timers.js';
import { until } from '../../support/until.js';
import { useTls } from '../../support/use-tls.js';
import { useApp } from '../../support/use-apps.js';

const tls = useTls();

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
      const timers = await timersOf(url(), 'server');
      return timers.length > 0 && timers;
    });
    connection.disconnect();

    expect(timer!.kind).toBe(KEEP_ALIVE_TIMER);
    expect(timer!.seconds).toBeLessThanOrEqual(45);
  });
});
