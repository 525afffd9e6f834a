// `npm run ui:pictures`: takes docs/images/dashboard-*.png of the dashboard of three replicas that share a Redis, after
// 90 s of load. Needs a Chromium and a redis-server.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

import { chromiumOnPath } from './lib/find-chromium.mjs';
import { build, installDependencies } from './lib/prepare.mjs';
import { ROOT, stop } from './lib/run.mjs';
import { RULES, startLoad } from './ui-pictures/load.mjs';

const FOLDER = join(ROOT, 'docs/images');
const LOAD_MILLIS = 90_000;
const KEY = 'deploy';

const DESKTOP = { width: 1280, height: 800 };
const PHONE = { width: 390, height: 844 };

const PICTURES = [
  { file: 'dashboard-light.png', viewport: DESKTOP, colorScheme: 'light' },
  { file: 'dashboard-dark.png', viewport: DESKTOP, colorScheme: 'dark', key: KEY },
  { file: 'dashboard-phone.png', viewport: PHONE, colorScheme: 'light' },
];

installDependencies();
build();
const { findRedisServer } = await import('./lib/find-redis.mjs');
const { startRedis, startReplica } = await import('./demo/processes.mjs');
const { chromium } = await import('playwright-core');

const executablePath = chromiumOnPath() ?? stop('No Chromium is there: put one on PATH.');
const rules = mkdtempSync(join(tmpdir(), 'sluice-pictures-'));
const CONFIG_FILE = join(rules, 'rules.json');
writeFileSync(CONFIG_FILE, JSON.stringify(RULES));
const redis = await startRedis(findRedisServer());
const environment = { REDIS_URL: redis.url, CONFIG_FILE, WINDOW_MILLIS: '2000' };
const replicas = [];
for (const name of ['a', 'b', 'c']) replicas.push(await startReplica(name, environment));
const stopLoad = startLoad(replicas.map(({ url }) => url));
// A container does not allow root to create Chromium's sandbox.
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });

const pages = await Promise.all(PICTURES.map(open));
await delay(LOAD_MILLIS);
mkdirSync(FOLDER, { recursive: true });
for (const { page, file } of pages) await page.screenshot({ path: join(FOLDER, file) });

stopLoad();
for (const { page } of pages) await page.unrouteAll({ behavior: 'ignoreErrors' });
await browser.close();
rmSync(rules, { recursive: true });
process.exit(0);

async function open({ file, key, ...options }) {
  const page = await browser.newPage({ ...options, locale: 'en-GB' });
  // The names of replicas begin with the name of this machine, which must not be in the pictures.
  await page.route(/\/ui\/data/, async (route) => {
    const response = await route.fetch();
    const names = replicas.map(({ id }, i) => [id, `sluice-${i}`]);
    const body = names.reduce(
      (text, [id, name]) => text.replaceAll(id, name),
      await response.text(),
    );
    await route.fulfill({ response, body });
  });
  await page.goto(`${replicas[0].url}/ui${key ? `#key=${encodeURIComponent(key)}` : ''}`);
  return { page, file };
}
