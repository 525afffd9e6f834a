import { readdirSync } from 'node:fs';

import { send } from '../../../support/http-client.js';
import { useApp } from '../../../support/use-apps.js';

const own = readdirSync('ui').map((file) => (file === 'index.html' ? '/ui' : `/ui/${file}`));
const library = ['/ui/uplot.js', '/ui/uplot.css'];
const paths = [...own, ...library];
const TYPES: Readonly<Record<string, RegExp>> = {
  html: /^text\/html; charset=utf-8$/,
  js: /^text\/javascript; charset=utf-8$/,
  css: /^text\/css; charset=utf-8$/,
  svg: /^image\/svg\+xml$/,
};

const READER = { name: 'reader', token: 'token-of-the-reader', scopes: ['debug'] };
const app = useApp(undefined, { tokens: [READER] });

test.each(paths)('%s needs no token, and may load nothing from elsewhere', async (path) => {
  const { status, headers } = await send(app.url, 'GET', path);

  expect(status).toBe(200);
  expect(headers['content-type']).toMatch(TYPES[path.split('.')[1] ?? 'html']!);
  const policy = String(headers['content-security-policy']).split('; ');
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy.join()).not.toMatch(/unsafe|\*|https?:|data:/);
  expect(headers).toMatchObject({
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-cache',
  });
});

test('a browser that has the current file gets a 304', async () => {
  const first = await send(app.url, 'GET', '/ui');
  const again = await send(app.url, 'GET', '/ui', { 'If-None-Match': first.headers.etag });
  const changed = await send(app.url, 'GET', '/ui', { 'If-None-Match': '"another"' });

  expect([again.status, again.text]).toEqual([304, '']);
  expect([changed.status, changed.text]).toEqual([200, first.text]);
});

test.each([
  ['the files of the page', own, 78_000],
  ['the files of uPlot, which draws its charts,', library, 54_000],
])('%s together are under the bound', async (_title, files, bound) => {
  const texts = await Promise.all(
    files.map(async (path) => (await send(app.url, 'GET', path)).text),
  );
  expect(Buffer.byteLength(texts.join(''))).toBeLessThan(bound);
});

test.each(['/ui/', '/ui/index.html', '/ui/../package.json', '/ui/%2e%2e/package.json', '/ui/none'])(
  '%s is not found',
  async (path) => {
    expect((await send(app.url, 'GET', path)).status).toBe(404);
  },
);
