import type { TestApp } from '../../support/app.js';
import { PATIENT_STORE } from '../../support/both-limiters.js';
import { debugState, untilWaiting } from '../../support/debug-state.js';
import { begin, ratePath, send } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useApps } from '../../support/use-apps.js';
import type { RedisForTests } from '../../support/use-redis.js';
import { unfold, untilText } from './seen.js';
import type { Open } from './use-browser.js';

const CONSOLE = { width: 1280, height: 800 };
/** The ids of elements, or their names, whose content is cut off or scrolls inside of the page. */
const HIDDEN_PARTS = `[...document.querySelectorAll('body *')]
  .filter((one) => one.checkVisibility() && !one.matches('.bar, .hidden, input, .u-wrap *'))
  .filter((one) => /auto|scroll|hidden/.test(getComputedStyle(one).overflow))
  .map((one) => one.id || one.localName)`;
const CHART_LABELS = `[...document.querySelectorAll('#charts [role=img]')].map((one) => one.ariaLabel)`;
/** Whether the first chart has a line in the colour of denials. */
const HAS_DENIED_LINE = `{
  const canvas = document.querySelector('#charts canvas');
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  data.some((red, i) => i % 4 === 0 && red > 180 && data[i + 1] < 80 && data[i + 2] < 80 && data[i + 3] > 200);
}`;

function addressOf(app: TestApp, key: string): string {
  return `${app.url}/ui#key=${encodeURIComponent(key)}`;
}

export function describeDetail(open: Open, redis: RedisForTests): void {
  describe('a key in the dashboard', () => {
    const start = useApps();

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
        await untilText(page, '#waiting tr', '(this one)');

        const cells = async (selector: string): Promise<string[]> =>
          (await page.locator(selector).allTextContents()).map((text) => text.replace(/\s+/g, ' '));
        expect(await cells('#limits tr')).toEqual([
          expect.stringMatching(
            /^ own limit 1 1 per 1 h, fixed window in 59 min \d+ s maximum: a request, instead of 100; window: the settings $/,
          ),
          ' queue 2 7 places rule 1, jobs ',
        ]);
        expect(await cells('#matches li')).toEqual(['rule 1, jobs job max_requests_in_queue: 7']);
        expect(await cells('#waiting tr')).toEqual([
          expect.stringMatching(/^1\d.* m?s[^()]+$/),
          expect.stringMatching(/^2\d.* m?s.+ \(this one\)$/),
        ]);
        expect((await cells('#waiting-replicas li')).sort()).toEqual([
          expect.stringMatching(/: 1 place, lease ends in /),
          expect.stringMatching(/: 1 place, lease ends in /),
        ]);
        await untilText(page, '#replica-count', '2 replicas');
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

      test('says how long requests may hold approvals', async () => {
        await send(app.url, 'POST', `${ratePath('job')}?holdMillis=60000`);
        const { page } = await open(addressOf(app, 'job'));
        await untilText(page, '#holders tr', 'a caller without a name');
        await unfold(page, 'matching rules');
        await untilText(page, '#overrides', 'They may hold approvals for up to 1 d without');
        expect(await page.locator('#names li').count()).toBe(0);
      });

      test('names its holders and waiters, and ends a hold once that is confirmed', async () => {
        const hold = (holder: string, more = ''): string =>
          `${ratePath('deploy')}?holdMillis=600000&holder=${holder}${more}`;
        await send(app.url, 'POST', hold('stuck'));
        const waiting = begin(app.url, 'POST', hold('next', '&canWait=true'));
        await untilWaiting(app.url, 'deploy', 1);
        const { page, complaints } = await open(`${app.url}/ui`);
        await untilText(page, '#keys tr', /deploy.*held by stuck since [\d:]+ \(.+\)/s);
        await page.getByRole('link', { name: 'deploy' }).click();
        await untilText(page, '#waiting tr', '(this one)');
        await untilText(page, '#holders tr', /^stuck[\d:]+ \(.+\)[\d:]+ \(in 9 min\)1End hold$/);
        const end = page.getByRole('button', { name: 'End hold of stuck' });
        await end.click();
        await page.getByRole('dialog', { name: 'End the hold of stuck?' }).waitFor();
        await page.keyboard.press('Escape');
        await page.getByRole('dialog').waitFor({ state: 'hidden' });
        expect(await page.locator('#holders tr').count()).toBe(1);
        await end.click();
        await page.getByRole('dialog').getByRole('button', { name: 'End hold' }).click();
        await waiting.answer;
        await untilText(page, '#holders tr', /^next/);
        expect(complaints).toEqual([]);
      });

      test('is paused once that is confirmed, and resumed', async () => {
        await send(app.url, 'POST', ratePath('job'));
        const { page, complaints } = await open(addressOf(app, 'job'));
        await untilText(page, '#detail-chip', 'used');
        await page.getByLabel('Pause for').selectOption('1 h');
        await page.getByRole('button', { name: 'Pause key' }).click();
        const dialog = page.getByRole('dialog', { name: 'Pause job for 1 h?' });
        await dialog.getByRole('button', { name: 'Pause key' }).click();
        await untilText(page, '#detail-chip', 'paused');
        await untilText(
          page,
          '#detail-state',
          /^Paused: no request is approved until [\d:]+ \(in /,
        );
        expect((await send(app.url, 'POST', ratePath('job'))).status).toBe(429);
        await page.getByRole('button', { name: 'Resume key' }).click();
        await page.getByRole('button', { name: 'Pause key' }).waitFor();
        expect(await page.locator('#detail-state').textContent()).not.toContain('Paused');
        expect(complaints).toEqual([]);
      });

      test('has charts of what is decided while somebody looks', async () => {
        const { page, complaints } = await open(addressOf(app, 'job'), { viewport: CONSOLE });
        await untilText(page, '#history-note', /^Counted since [\d:]+, in steps of 2 s/);
        const drawn = (): Promise<string[]> => page.evaluate(CHART_LABELS);
        await until(async () => {
          await send(app.url, 'POST', ratePath('job'));
          return /denied, at most (?!0\/s)/.test((await drawn())[0]!);
        });
        expect(await drawn()).toEqual([
          expect.stringMatching(/^approved, at most [\d.]+\/s; denied, at most [\d.]+\/s$/),
          'waiting, at most 0',
          'waiting time of approvals, mean, at most 0 ms',
        ]);
        expect(await page.evaluate(HAS_DENIED_LINE)).toBe(true);
        expect(complaints).toEqual([]);
      });

      test('has room for everything at 1280x800, without a scroll inside of the page', async () => {
        await send(app.url, 'POST', `${ratePath('job')}?holdMillis=600000&holder=ci-7`);
        const waiting = Array.from({ length: 12 }, () =>
          begin(app.url, 'POST', `${ratePath('job')}?canWait=true`),
        );
        await untilWaiting(app.url, 'job', waiting.length);
        const { page } = await open(addressOf(app, 'job'), { viewport: CONSOLE });
        await untilText(page, '#history-note', 'Counted since');
        const more = page.getByRole('button', { name: 'Show all 12' });
        await more.waitFor();
        const edge = await page.locator('#detail').boundingBox();

        expect(edge!.y + edge!.height).toBeLessThanOrEqual(CONSOLE.height);
        expect(await page.evaluate(HIDDEN_PARTS)).toEqual([]);
        await more.click();
        expect(await page.locator('#waiting tr').count()).toBe(12);
        expect(await page.evaluate(HIDDEN_PARTS)).toEqual([]);
        for (const request of waiting) request.disconnect();
      });

      test('says until when it is paused, and that a request has set the length of its windows', async () => {
        await send(app.url, 'POST', ratePath('job'));
        await send(app.url, 'POST', `${ratePath('job')}?windowMillis=7200000`);
        await send(app.url, 'PUT', `${ratePath('job')}?pauseMillis=7200000`);
        const { page } = await open(addressOf(app, 'job'));
        await untilText(page, '#detail-state', 'Paused: no request is approved until');
        await untilText(page, '#limits', 'a request, from the next window on');
      });

      test('that does not exist says so, and which limits would apply', async () => {
        const { page } = await open(`${app.url}/ui`);
        await page.getByLabel('Search for keys').fill('no/such key');
        await page.getByRole('button', { name: 'Open key' }).click();
        await untilText(page, '#detail-state', 'This key does not exist now');
        await untilText(page, '#limits', /own limit\s+1 per 1 min, fixed window\s+the settings/);
        expect(await page.locator('#detail-holders').isVisible()).toBe(false);
        expect(await debugState(app.url, 'no/such key')).toMatchObject({ Found: false });
      });

      test('has the usage of its further limits, and what set each', async () => {
        const hour = { name: 'hour', max_hits_per_window: 9, window_millis: 3_600_000 };
        const rules = [{ key_pattern: 'job', limits: [hour] }];
        const limited = await start({ WINDOW_MILLIS: '7200000' }, { rules });
        const { page, complaints } = await open(addressOf(limited, 'job'));
        await untilText(page, '#limits', /hour\s+9 per 1 h, fixed window\s+rule 1/);
        await send(limited.url, 'POST', `${ratePath('job')}?hits=9`);
        await send(limited.url, 'POST', ratePath('job'));
        await untilText(page, '#limits', /hour\s+9\s+9 per 1 h, fixed window\s+in \d+ min/);
        await untilText(page, '#detail-state', 'limit reached (hour)');
        await page.goto(`${limited.url}/ui`);
        await untilText(page, '#keys', /9\s+of 9 per 1 h, limit hour/);
        expect(complaints).toEqual([]);
      });

      test('has its algorithm, and those of its further limits, if they are no fixed windows', async () => {
        const minute = { name: 'minute', max_hits_per_window: 9, window_millis: 60_000 };
        const sliding = { ...minute, algorithm: 'sliding_window', steps: 20 };
        const rule = { key_pattern: 'job', algorithm: 'token_bucket', burst: 3, limits: [sliding] };
        const paced = await start({}, { rules: [rule] });
        const { page, complaints } = await open(addressOf(paced, 'job'));
        await untilText(page, '#limits', 'token bucket, burst 3');
        await untilText(page, '#limits', 'algorithm: rule 1');
        await untilText(page, '#limits', /minute\s+9 per 1 min, sliding window, steps 20\s+rule 1/);
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
        await untilText(page, '#limits', 'per calendar day of Europe/Berlin');
        await untilText(page, '#limits', 'window: rule 1');
        await untilText(page, '#limits', /monthly\s+9 per calendar month of UTC\s+rule 1/);
        expect(complaints).toEqual([]);
      });

      test('can be checked, waited for and released by hand', async () => {
        const { page, complaints } = await open(addressOf(app, 'job'));
        await unfold(page, 'Try a check');
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
        await untilText(page, '#limits', 'maximum: a request, instead of 1');
        expect(complaints).toEqual([]);
      });
    });
  });
}
