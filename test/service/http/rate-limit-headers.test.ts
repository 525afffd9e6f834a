import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { startTestApp, type TestApp } from '../../support/app.js';
import { bothLimiters } from '../../support/both-limiters.js';
import { untilWaiting } from '../../support/debug-state.js';
import { type Answer, approve, begin, ratePath, send } from '../../support/http-client.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';

const redis = useRedis();
const folder = useTemporaryFolder();

/** The headers of any form that describe the limit. */
function limitHeaders({ headers }: Answer): Record<string, unknown> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name.includes('ratelimit')));
}

/** The header's `t`, up to the length of the window. */
const UP_TO_AN_HOUR = '(360[0]|3[0-5]\\d\\d|[12]?\\d{1,3})';

describe.each(bothLimiters(redis))(
  'the limit in the headers of a check (%s limiter)',
  (_, settings) => {
    let app: TestApp;
    let key: string;
    beforeEach(() => {
      key = uniqueKey();
    });
    afterEach(() => app.stop(0));

    async function start(environment: Readonly<Record<string, string>> = {}): Promise<void> {
      app = await startTestApp({
        ...settings(),
        WINDOW_MILLIS: '3600000',
        MAX_REQUESTS: '2',
        ...environment,
      });
    }

    const check = (query = ''): Promise<Answer> => send(app.url, 'POST', ratePath(key) + query);

    test('is in the form of the draft, in each answer that was counted', async () => {
      await start();
      for (const [status, remaining] of [
        [200, 1],
        [200, 0],
        [429, 0],
      ]) {
        const answer = await check();
        expect(answer.status).toBe(status);
        expect(limitHeaders(answer)).toEqual({
          'ratelimit-policy': '"default";q=2;w=3600',
          ratelimit: expect.stringMatching(
            new RegExp(`^"default";r=${remaining};t=${UP_TO_AN_HOUR}$`),
          ) as unknown,
        });
        if (status === 429) {
          const reset = /t=(\d+)/.exec(String(answer.headers.ratelimit))?.[1];
          expect(answer.headers['retry-after']).toBe(reset);
        }
      }
    });

    test('follows an override at once', async () => {
      await start();
      expect((await check('?maxRequests=7')).headers['ratelimit-policy']).toBe(
        '"default";q=7;w=3600',
      );
    });

    test('is also in an answer after a wait', async () => {
      await start();
      const approved = await approve(app.url, key);
      await approve(app.url, key);
      const waiting = begin(app.url, 'POST', `${ratePath(key)}?canWait=true`);
      await untilWaiting(app.url, key, 1);
      await send(app.url, 'DELETE', `${ratePath(key)}/${approved}`);
      const answer = await waiting.answer;
      expect(answer.status).toBe(200);
      expect(answer.headers.ratelimit).toMatch(/^"default";r=0;t=\d+$/);
    });

    test('has the name of the rule, and no window length unless it is in whole seconds', async () => {
      const file = join(folder, uniqueKey());
      const rule = { key_pattern: key, name: 'tenants/gold', window_millis: 3_600_001 };
      await writeFile(file, JSON.stringify({ keys: [{ ...rule, shadow: true }] }));
      await start({ CONFIG_FILE: file, MAX_REQUESTS: '1' });
      await check();
      const passed = await check();
      expect([passed.status, passed.headers['x-sluice-shadow']]).toEqual([200, 'denied']);
      expect(limitHeaders(passed)).toEqual({
        'ratelimit-policy': '"tenants/gold";q=1',
        ratelimit: expect.stringMatching(/^"tenants\/gold";r=0;t=\d+$/) as unknown,
      });
    });

    test('can be in the older form', async () => {
      await start({ RATE_LIMIT_HEADERS: 'legacy' });
      expect(limitHeaders(await check())).toEqual({
        'x-ratelimit-limit': '2',
        'x-ratelimit-remaining': '1',
        'x-ratelimit-reset': expect.stringMatching(new RegExp(`^${UP_TO_AN_HOUR}$`)) as unknown,
      });
    });

    test('can be left out', async () => {
      await start({ RATE_LIMIT_HEADERS: 'off' });
      expect(limitHeaders(await check())).toEqual({});
    });

    test('is left out if nothing was counted', async () => {
      await start();
      expect(limitHeaders(await check('?canWait=perhaps'))).toEqual({});
      expect(limitHeaders(await send(app.url, 'GET', '/healthz'))).toEqual({});
    });
  },
);
