import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

import type { Page } from 'playwright-core';

import type { TestApp } from '../../support/app.js';
import { approve, send } from '../../support/http-client.js';
import { useApps } from '../../support/use-apps.js';
import type { Open } from './use-browser.js';

/** Names that the browser resolves to this machine. */
const [EVIL, SLUICE] = ['evil.test', 'sluice.test'];
/** The argument of a browser that does so. */
export const HOST_NAMES = '--host-resolver-rules=MAP *.test 127.0.0.1';

/** Keys stay for longer than a page takes to open. */
const LOGGED = { LOG_2XX: 'true', LOG_4XX: 'true', WINDOW_MILLIS: '3600000' };

/** Sends any request that a page can send to this URL, and returns whether the page could read three answers. */
const ATTEMPTS = `async (url) => {
  new Image().src = url + '/rate/image?maxRequests=1';
  const frame = document.body.appendChild(document.createElement('iframe'));
  frame.name = 'frame';
  const form = document.body.appendChild(document.createElement('form'));
  Object.assign(form, { method: 'POST', target: 'frame', action: url + '/rate/form?maxRequests=1' });
  form.submit();
  const send = (path, options) => fetch(url + path, options).then(() => 'answered', () => 'refused');
  await send('/rate/get', { mode: 'no-cors' });
  await send('/rate/post', { method: 'POST', mode: 'no-cors', body: 'x' });
  await send('/ui/try/check?key=try', { method: 'POST', mode: 'no-cors' });
  return [await send('/rate/cors', { method: 'POST' }), await send('/debug'), await send('/ui/data')];
}`;

export function describeForeignPages(open: Open): void {
  describe('pages of other origins', () => {
    const start = useApps();
    let page: Server;
    let pagePort: number;
    let app: TestApp;
    beforeAll(async () => {
      page = createServer((_request, response) => {
        response.setHeader('Content-Type', 'text/html').end('<title>page</title><body>page');
      }).listen(0, '127.0.0.1');
      await once(page, 'listening');
      pagePort = (page.address() as AddressInfo).port;
    });
    afterAll(async () => {
      page.close();
      page.closeAllConnections();
      await once(page, 'close');
    });

    async function keys(): Promise<string[]> {
      const answer = await send(app.url, 'GET', '/debug');
      return Object.keys((answer.json() as { Instances: object }).Instances);
    }

    async function attempt(from: Page, url: string): Promise<unknown> {
      const read = await from.evaluate(`(${ATTEMPTS})(${JSON.stringify(url)})`);
      // The page gets no answers to these two.
      for (const key of ['image', 'form']) await app.logged((line) => line.key === key);
      return read;
    }

    test.each([
      ['another site', EVIL],
      ['another port', '127.0.0.1'],
    ])('of %s can count nothing, and read nothing', async (_what, host) => {
      app = await start(LOGGED);
      await approve(app.url, 'job');
      const { page: foreign } = await open(`http://${host}:${pagePort}`);

      expect(await attempt(foreign, app.url)).toEqual(['refused', 'refused', 'refused']);
      expect(await keys()).toEqual(['job']);
    });

    // The remaining risk in docs/security.md: the browser does not mark these requests.
    test('can count only with GET if the service has a name and no TLS', async () => {
      app = await start({ ...LOGGED, ALLOWED_HOSTS: SLUICE });
      const { page: foreign } = await open(`http://${EVIL}:${pagePort}`);
      const { port } = new URL(app.url);
      await attempt(foreign, `http://${SLUICE}:${port}`);

      expect((await keys()).sort()).toEqual(['get', 'image']);
    });
  });
}
