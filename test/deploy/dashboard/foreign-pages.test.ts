import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

import type { Page } from 'playwright-core';

import { type TestApp, startTestApp } from '../../support/app.js';
import { approve, send } from '../../support/http-client.js';
import { untilListed } from './seen.js';
import { describeInBrowser, useBrowser } from './use-browser.js';

/** Names that the browser takes for this machine, as DNS would have it. */
const [EVIL, SLUICE] = ['evil.test', 'sluice.test'];

const LOGGED = { LOG_2XX: 'true', LOG_4XX: 'true' };

/** Sends what any page can send. Takes the URL of the service, and tells whether the page could read three answers. */
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

describeInBrowser('pages of other origins', () => {
  const open = useBrowser(`--host-resolver-rules=MAP *.test 127.0.0.1`);
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
  afterEach(() => app.stop(0));
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
    // The page is not told of these.
    for (const key of ['image', 'form']) await app.logged((line) => line.key === key);
    return read;
  }

  test.each([
    ['another site', EVIL],
    ['another port', '127.0.0.1'],
  ])('of %s have nothing counted, and read nothing', async (_what, host) => {
    app = await startTestApp(LOGGED);
    await approve(app.url, 'job');
    const { page: foreign } = await open(`http://${host}:${pagePort}`);

    expect(await attempt(foreign, app.url)).toEqual(['refused', 'refused', 'refused']);
    expect(await keys()).toEqual(['job']);
  });

  test('may have a link to the dashboard, which works', async () => {
    app = await startTestApp(LOGGED);
    await approve(app.url, 'job');
    const { page: foreign } = await open(`http://${EVIL}:${pagePort}`);
    await foreign.setContent(`<a href="${app.url}/ui">dashboard</a>`);
    await foreign.getByText('dashboard').click();

    await untilListed(foreign, ['job']);
  });

  test('whose name turns into the address of the service are refused', async () => {
    app = await startTestApp(LOGGED);
    const { page: foreign } = await open(`http://${EVIL}:${pagePort}`);
    const { port } = new URL(app.url);

    expect((await foreign.goto(`http://${EVIL}:${port}/ui`))?.status()).toBe(403);
  });

  test('that are named in ALLOWED_ORIGINS may ask', async () => {
    app = await startTestApp({ ...LOGGED, ALLOWED_ORIGINS: `http://${EVIL}:${pagePort}` });
    const { page: named } = await open(`http://${EVIL}:${pagePort}`);

    // No answer says that the page may read it.
    expect(await attempt(named, app.url)).toEqual(['refused', 'refused', 'refused']);
    expect((await keys()).sort()).toEqual(['cors', 'form', 'get', 'image', 'post', 'try']);
  });

  // What docs/security.md says that remains: the browser does not mark these.
  test('of a service that has a name and no TLS count by GET, and by nothing else', async () => {
    app = await startTestApp({ ...LOGGED, ALLOWED_HOSTS: SLUICE });
    const { page: foreign } = await open(`http://${EVIL}:${pagePort}`);
    const { port } = new URL(app.url);
    await attempt(foreign, `http://${SLUICE}:${port}`);

    expect((await keys()).sort()).toEqual(['get', 'image']);
  });
});
