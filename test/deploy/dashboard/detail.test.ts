import type { TestApp } from '../../support/app.js';
import { PATIENT_STORE } from '../../support/both-limiters.js';
import { debugState, untilWaiting } from '../../support/debug-state.js';
import { begin, ratePath, send } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useApps } from '../../support/use-apps.js';
import { useRedis } from '../../support/use-redis.js';
import { unfold, untilText } from './seen.js';
import { describeInBrowser, useBrowser } from './use-browser.js';

const redis = useRedis();
const start = useApps();

function addressOf(app: TestApp, key: string): string {
  return `${app.url}/ui#key=${encodeURIComponent(key)}`;
}

describeInBrowser('a key in the dashboard', () => {
  const open = useBrowser();

  describe('of two replicas on a Redis', () => {
    let replicas: readonly [TestApp, TestApp];
    let prefix: string;
    beforeEach(async () => {
      prefix = `${uniqueKey()}:`;
      const rules = [{ key_pattern: 'job', name: 'jobs', max_requests_in_queue: 7 }];
      const settings = {
        ...PATIENT_STORE,
        REDIS_URL: redis.url,
        KEY_PREFIX: prefix,
        WINDOW_MILLIS: '3600000',
      };
      replicas = await Promise.all([start(settings, { rules }), start(settings, { rules })]);
    });

    test('has its limits with their sources, and each waiter with its replica and waiting time', async () => {
      const [first, second] = replicas;
      await send(first.url, 'POST', `${ratePath('job')}?maxRequests=1`);
      const waiting = [];
      for (const [i, { url }] of [second, first].entries()) {
        waiting.push(begin(url, 'POST', `${ratePath('job')}?canWait=true`));
        await untilWaiting(url, 'job', i + 1);
      }
      const { page, complaints } = await open(addressOf(first, 'job'));
      await untilText(page, '#waiting li', /on .+ \(this one\)/);

      const cells = (selector: string) => page.locator(selector).allTextContents();
      expect(await cells('#limits tr')).toEqual([
        'Length of a window1 hthe settings',
        'Approvals per window1a request, instead of 100',
        'Places in the queue7rule 1, jobs',
      ]);
      expect(await cells('#matches li')).toEqual(['rule 1, jobs job max_requests_in_queue: 7']);
      const places = (await cells('#waiting li')).map((text) => text.includes('(this one)'));
      expect(places).toEqual([false, true]);
      expect((await cells('#waiting-replicas li')).sort()).toEqual([
        expect.stringMatching(/: 1 place, lease ends in /),
        expect.stringMatching(/: 1 place, lease ends in /),
      ]);
      await untilText(page, '#replica-count', '2 replicas');
      await untilText(page, '#replicas', /1 waiting.*1 waiting/);
      expect(complaints).toEqual([]);
      for (const request of waiting) request.disconnect();
    });

    test('has its names in Redis, and a button copies them', async () => {
      const [first] = replicas;
      await send(first.url, 'POST', ratePath('job'));
      const permissions = ['clipboard-read', 'clipboard-write'];
      const { page } = await open(addressOf(first, 'job'), { permissions });
      await unfold(page, 'Names in Redis');
      await page.getByRole('button', { name: 'Copy the name of: state' }).click();
      await untilText(page, '#names button', 'Copied');

      expect(await page.evaluate('navigator.clipboard.readText()')).toBe(`${prefix}{job}`);
      expect(await redis.client.exists(`${prefix}{job}`)).toBe(1);
    });

    test('also copies over plain HTTP, without a clipboard in the page', async () => {
      const [first] = replicas;
      await send(first.url, 'POST', ratePath('job'));
      const permissions = ['clipboard-read', 'clipboard-write'];
      const { page } = await open(addressOf(first, 'job'), { permissions });
      await page.evaluate(
        `navigator.clipboard.writeText = () => Promise.reject(new Error('not here'))`,
      );
      await page.getByRole('button', { name: 'Copy key' }).click();
      await untilText(page, '#copy-key', 'Copied');
      expect(await page.evaluate('navigator.clipboard.readText()')).toBe('job');
    });
  });

  describe('of an embedded limiter', () => {
    let app: TestApp;
    beforeEach(async () => {
      app = await start({ WINDOW_MILLIS: '60000', MAX_REQUESTS: '1' });
    });

    test('has a window that also moves between answers', async () => {
      await send(app.url, 'POST', ratePath('job'));
      const { page } = await open(addressOf(app, 'job'));
      await untilText(page, '#window-text', /1 min long; ends in \d+ s/);
      await page.route('**/ui/data*', () => undefined);
      const width = (): Promise<number> =>
        page.evaluate(`parseFloat(document.querySelector('#window > div').style.width)`);
      const before = await width();
      await until(async () => (await width()) > before);
      expect(await page.locator('#names li').count()).toBe(0);
    });

    test('says what is held of it, and how long requests may hold approvals', async () => {
      await send(app.url, 'POST', `${ratePath('job')}?holdMillis=60000`);
      const { page } = await open(addressOf(app, 'job'));
      await untilText(page, '#gauges', '1 of 1, 1 held');
      await unfold(page, 'matching rules');
      await untilText(page, '#overrides', 'They may hold approvals for up to 1 d without');
    });

    test('lists its waiters and holders in their order, and a second click ends a hold', async () => {
      const hold = (holder: string, more = ''): string =>
        `${ratePath('job')}?holdMillis=600000&holder=${holder}${more}`;
      await send(app.url, 'POST', hold('stuck'));
      const waiting = begin(app.url, 'POST', hold('next', '&canWait=true'));
      await untilWaiting(app.url, 'job', 1);
      const { page, complaints } = await open(addressOf(app, 'job'));
      await untilText(page, '#waiting li', /on .+ \(this one\)/);
      await untilText(page, '#holders li', /^stucksince .+; lapses in .+ unless renewed; 1 hit/);
      await page.getByRole('button', { name: 'End the hold of stuck' }).click();
      await page.getByRole('button', { name: 'End now? The hold of stuck' }).click();
      await waiting.answer;
      await untilText(page, '#holders li', /^next/);
      expect(complaints).toEqual([]);
    });

    test('says how long it is paused, and that a request has set the length of its windows', async () => {
      await send(app.url, 'POST', ratePath('job'));
      await send(app.url, 'POST', `${ratePath('job')}?windowMillis=7200000`);
      await send(app.url, 'PUT', `${ratePath('job')}?pauseMillis=7200000`);
      const { page } = await open(addressOf(app, 'job'));
      await untilText(page, '#detail-state', 'Paused: no request is approved for');
      await untilText(page, '#limits', 'a request, from the next window on');
    });

    test('that does not exist says so, and which limits would apply', async () => {
      const { page } = await open(`${app.url}/ui`);
      await page.getByLabel('Search for keys').fill('no/such key');
      await page.getByRole('button', { name: 'Open key' }).click();
      await untilText(page, '#detail-state', 'This key does not exist now');
      await untilText(page, '#limits', 'Approvals per window1the settings');
      expect(await page.locator('#detail-live').isVisible()).toBe(false);
      expect(await debugState(app.url, 'no/such key')).toMatchObject({ Found: false });
    });

    test('has the usage of its further limits, and what set each', async () => {
      const hour = { name: 'hour', max_hits_per_window: 9, window_millis: 3_600_000 };
      const rules = [{ key_pattern: 'job', limits: [hour] }];
      const limited = await start({ WINDOW_MILLIS: '7200000' }, { rules });
      const { page, complaints } = await open(addressOf(limited, 'job'));
      await untilText(page, '#limits', 'Limit hour9 hits per 1 hrule 1');
      await send(limited.url, 'POST', `${ratePath('job')}?hits=9`);
      await send(limited.url, 'POST', ratePath('job'));
      await untilText(page, '#gauges', /Limit hour9 of 9; window ends in \d+ min/);
      await untilText(page, '#detail-state', 'limit reached (hour)');
      await page.goto(`${limited.url}/ui`);
      await untilText(page, '#keys', '9 of 100; hour: 9 of 9');
      expect(complaints).toEqual([]);
    });

    test('has its algorithm, and those of its further limits, if they are no fixed windows', async () => {
      const minute = { name: 'minute', max_hits_per_window: 9, window_millis: 60_000 };
      const sliding = { ...minute, algorithm: 'sliding_window', steps: 20 };
      const rule = { key_pattern: 'job', algorithm: 'token_bucket', burst: 3, limits: [sliding] };
      const paced = await start({}, { rules: [rule] });
      const { page, complaints } = await open(addressOf(paced, 'job'));
      await untilText(page, '#limits', 'Algorithmtoken bucket, burst 3rule 1');
      await untilText(
        page,
        '#limits',
        'Limit minute9 hits per 1 min; sliding window, 20 stepsrule 1',
      );
      await page.goto(addressOf(paced, 'other'));
      await untilText(page, '#limits', 'Approvals per window');
      expect(await page.locator('#limits').textContent()).not.toContain('Algorithm');
      expect(complaints).toEqual([]);
    });

    test('has its calendar instead of a length, and those of its further limits', async () => {
      const monthly = { name: 'monthly', max_hits_per_window: 9, calendar: 'month' };
      const zone = { calendar: 'day', time_zone: 'Europe/Berlin' };
      const daily = await start(
        {},
        { rules: [{ key_pattern: 'job', ...zone, limits: [monthly] }] },
      );
      const { page, complaints } = await open(addressOf(daily, 'job'));
      await untilText(page, '#limits', 'Algorithmcalendar day, Europe/Berlinrule 1');
      await untilText(page, '#limits', 'Limit monthly9 hits per month; calendar month, UTCrule 1');
      expect(await page.locator('#limits').textContent()).not.toContain('Length of a window');
      expect(complaints).toEqual([]);
    });

    test('can be checked, waited for and released by hand', async () => {
      const { page, complaints } = await open(addressOf(app, 'job'));
      await unfold(page, 'Try it');
      const lines = page.locator('#tried li');
      await page.getByRole('button', { name: 'Check', exact: true }).click();
      await untilText(page, '#tried li', /Approved after .+; 0 left in this window/);
      await page.getByRole('button', { name: 'Check', exact: true }).click();
      await untilText(page, '#tried li', /429: rate limit exceeded; retry after \d+ s/);
      await untilText(page, '#detail-state', 'Denied since');

      await page.getByRole('button', { name: 'Check and wait' }).click();
      await untilText(page, '#tried li', /waiting for/);
      await untilWaiting(app.url, 'job', 1);
      await page.getByRole('button', { name: 'Cancel' }).click();
      await untilText(page, '#tried li', 'Canceled after');
      await untilWaiting(app.url, 'job', 0);

      await page.getByRole('button', { name: 'Check and wait' }).click();
      await untilWaiting(app.url, 'job', 1);
      await page.getByRole('button', { name: 'Release' }).click();
      await untilText(page, '#tried li', 'Released');
      await until(async () => (await lines.filter({ hasText: 'Approved' }).count()) === 2);
      expect(await debugState(app.url, 'job')).toMatchObject({ NumApprovedThisWindow: 1 });

      await page.getByLabel('maxRequests', { exact: true }).fill('9');
      await page.getByRole('button', { name: 'Check', exact: true }).click();
      await untilText(page, '#limits', 'Approvals per window9a request, instead of 1');
      expect(complaints).toEqual([]);
    });
  });
});
