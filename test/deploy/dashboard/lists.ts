import type { Page } from 'playwright-core';

import type { TestApp } from '../../support/app.js';
import { PATIENT_STORE } from '../../support/both-limiters.js';
import { debugState, untilWaiting } from '../../support/debug-state.js';
import { ratePath, send } from '../../support/http-client.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useApp } from '../../support/use-apps.js';
import type { RedisForTests } from '../../support/use-redis.js';
import { useWaiters } from '../../support/use-waiters.js';
import { violationsOf } from './axe.js';
import { unfold, untilText } from './seen.js';
import type { Open } from './use-browser.js';

const PHONE = { width: 390, height: 844 };
const LONGEST_NAME = 'a tenant with a name of as many bytes as the name of a group has';
const HOUR = { window_millis: 3_600_000, max_requests_per_window: 1 };

const BUCKET = {
  ...{ algorithm: 'token_bucket', burst: 5 },
  ...{ window_millis: 3_600_000, max_requests_per_window: 10 },
};

const LANES = { lanes: [{ name: 'interactive', head_start_millis: 30_000 }, { name: 'batch' }] };

function triedKey(lists: 'lanes' | 'groups' | 'plain'): string {
  return `tried/${lists}/${uniqueKey()}`;
}

export function describeLists(open: Open, redis: RedisForTests): void {
  describe('the lists of a key in the dashboard', () => {
    const [lanes, groups, plain, tenants] = [uniqueKey(), uniqueKey(), uniqueKey(), uniqueKey()];
    const app = useApp(() => ({ ...PATIENT_STORE, REDIS_URL: redis.url }), {
      rules: [
        {
          key_pattern: lanes,
          ...HOUR,
          queue: LANES,
          limits: [{ ...HOUR, name: 'batch-share', lanes: ['batch'] }],
        },
        { key_pattern: groups, ...HOUR, queue: { fair: true } },
        { key_pattern: plain, ...HOUR },
        {
          key_pattern: tenants,
          window_millis: HOUR.window_millis,
          max_requests_per_window: 9,
          queue: { fair: true },
          limits: [
            { ...HOUR, name: 'tenant', per: 'group', maxima: { gold: 4 } },
            { name: 'pace', per: 'group', ...BUCKET },
          ],
        },
        { key_pattern: 'tried/.*', key_pattern_is_regex: true, ...HOUR },
        { key_pattern: 'tried/lanes/.*', key_pattern_is_regex: true, queue: LANES },
        { key_pattern: 'tried/groups/.*', key_pattern_is_regex: true, queue: { fair: true } },
      ],
    });
    const wait = useWaiters(app);

    const addressOf = ({ url }: Pick<TestApp, 'url'>, key: string): string =>
      `${url}/ui#key=${key}`;

    test('are its lanes with their waiters, the longest first', async () => {
      await wait(lanes, 'lane=interactive', 'lane=batch', '', 'lane=batch');
      const { page, complaints } = await open(addressOf(app, lanes));
      await untilText(page, '#waiting tr', /\d+ m?s/);

      const rows = await page.locator('#list-rows tr').allTextContents();
      expect(rows).toEqual([
        expect.stringMatching(/^lane batch3\d+(\.\d)? m?s$/),
        expect.stringMatching(/^lane interactive1\d+(\.\d)? m?s$/),
      ]);
      expect(await page.locator('#limits').textContent()).toContain(
        '1 requests per 1 h, fixed window, only lane batch',
      );
      expect(await page.locator('#lists thead').innerText()).not.toContain('Stopped by');
      expect(await page.locator('#lists-rest').textContent()).toBe('');
      expect(complaints).toEqual([]);
    });

    test('are its longest groups, and how many more there are', async () => {
      const others = Array.from({ length: 21 }, (_, i) => `group=tenant-${i}`);
      const longest = `group=${encodeURIComponent(LONGEST_NAME)}`;
      await wait(groups, longest, longest, longest, 'hits=1', 'hits=1', ...others);
      const { page, complaints } = await open(addressOf(app, groups), { viewport: PHONE });
      await untilText(page, '#lists-rest', 'and 3 more that wait');

      const rows = page.locator('#list-rows th');
      expect((await rows.allTextContents()).slice(0, 3)).toEqual([
        `group ${LONGEST_NAME}`,
        'no group',
        'group tenant-0',
      ]);
      expect(await rows.count()).toBe(20);
      expect(await violationsOf(page)).toEqual([]);
      expect(await page.evaluate('document.documentElement.scrollWidth > innerWidth')).toBe(false);
      expect(complaints).toEqual([]);
    });

    test('are its groups, with what each uses of limits of its own, and what stops it until when', async () => {
      for (const group of ['tenant-1', 'gold', 'gold']) {
        await send(app.url, 'POST', `${ratePath(tenants)}?group=${group}`);
      }
      await send(app.url, 'PUT', `${ratePath(tenants)}?pauseMillis=1800000&group=tenant-2`);
      await wait(tenants, 'group=tenant-1', 'group=tenant-1', 'group=tenant-2');
      const { page, complaints } = await open(addressOf(app, tenants));
      await untilText(page, '#list-rows', 'paused');

      const rows = await page.locator('#list-rows tr').all();
      const texts = await Promise.all(rows.map((row) => row.locator('th, td').allInnerTexts()));
      expect(texts.map((cells) => cells.join('\t').replaceAll('\u00a0', ' '))).toEqual([
        expect.stringMatching(
          /^group tenant-1\t2\t[\d.]+ m?s\ttenant 1 of 1, pace 1 of 5\ttenant, 59 min \d+ s left$/,
        ),
        expect.stringMatching(
          /^group tenant-2\t1\t[\d.]+ m?s\ttenant 0 of 1, pace 0 of 5\tpaused, 29 min \d+ s left$/,
        ),
        'no group\t0\t\ttenant 1 of 1, pace 1 of 5\t',
        'group gold\t0\t\ttenant 2 of 4, pace 2 of 5\t',
      ]);
      expect(await violationsOf(page)).toEqual([]);
      expect(complaints).toEqual([]);
    });

    test('are left out if all requests wait in one list', async () => {
      await wait(plain, 'hits=1');
      const { page } = await open(addressOf(app, plain));
      await untilText(page, '#waiting tr', /\d+ m?s/);

      expect(await page.locator('#lists').isVisible()).toBe(false);
      expect(await debugState(app.url, plain)).not.toHaveProperty('Queue');
    });

    describe('can be chosen for a check by hand:', () => {
      const fieldsOf = (page: Page) => ({
        lane: page.getByRole('combobox', { name: 'lane' }),
        group: page.getByRole('textbox', { name: 'group' }),
      });
      const listsOf = async (key: string): Promise<unknown> =>
        (await debugState(app.url, key)).Queue?.Lists.map(({ Lane, Group }) => Lane ?? Group);

      test('a lane, at first the last one, or a group', async () => {
        const tried = { lanes: triedKey('lanes'), groups: triedKey('groups') };
        for (const key of Object.values(tried)) await send(app.url, 'POST', ratePath(key));
        const { page, complaints } = await open(addressOf(app, tried.lanes), { viewport: PHONE });
        const { lane, group } = fieldsOf(page);
        const waitByHand = () => page.getByRole('button', { name: 'Check and wait' }).click();
        await unfold(page, 'Try a check');

        await lane.waitFor();
        await waitByHand();
        await untilWaiting(app.url, tried.lanes, 1);
        await lane.selectOption('interactive');
        await waitByHand();
        await untilWaiting(app.url, tried.lanes, 2);
        expect(await listsOf(tried.lanes)).toEqual(['batch', 'interactive']);
        expect(await group.isVisible()).toBe(false);
        expect(await violationsOf(page)).toEqual([]);

        await page.goto(addressOf(app, tried.groups));
        await group.fill('tenant 7');
        await waitByHand();
        await untilWaiting(app.url, tried.groups, 1);
        expect(await listsOf(tried.groups)).toEqual(['tenant 7']);
        expect(await lane.isVisible()).toBe(false);
        expect(await violationsOf(page)).toEqual([]);
        expect(complaints).toEqual([]);
      });

      test('neither of a key without them, whatever was chosen for another key', async () => {
        const { page } = await open(addressOf(app, triedKey('groups')));
        const { lane, group } = fieldsOf(page);
        await unfold(page, 'Try a check');
        await group.fill('tenant 7');
        await page.goto(addressOf(app, triedKey('plain')));
        await untilText(page, '#limits', 'own limit');
        await page.getByRole('button', { name: 'Check', exact: true }).click();
        await untilText(page, '#tried li', 'Approved after');

        expect([await lane.isVisible(), await group.isVisible()]).toEqual([false, false]);
      });
    });
  });
}
