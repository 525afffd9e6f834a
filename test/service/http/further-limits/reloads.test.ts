import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { startTestApp, type TestApp } from '../../../support/app.js';
import { debugState, untilWaiting } from '../../../support/debug-state.js';
import {
  approve,
  begin,
  type PendingRequest,
  ratePath,
  send,
} from '../../../support/http-client.js';
import { useTemporaryFolder } from '../../../support/temporary-folder.js';
import { uniqueKey } from '../../../support/unique-key.js';

const HOUR = 3_600_000;
const HOURLY = { name: 'hour', max_requests_per_window: 1, window_millis: HOUR };

const folder = useTemporaryFolder();

describe('a reload of the rules', () => {
  let app: TestApp;
  let file: string;
  let key: string;
  let waiting: PendingRequest;
  beforeEach(() => {
    key = uniqueKey();
    file = join(folder, uniqueKey());
  });
  afterEach(() => app.stop(0));

  /** Ten requests in two hours, and these limits besides. */
  const write = (limits: readonly object[], more: object = {}): Promise<void> => {
    const rule = { key_pattern: key, max_requests_per_window: 10, window_millis: 2 * HOUR };
    return writeFile(file, JSON.stringify({ keys: [{ ...rule, ...more, limits }] }));
  };

  async function reload(...args: Parameters<typeof write>): Promise<void> {
    await write(...args);
    await app.reloadRules();
  }

  /** Starts a service with one approval of the key, and a check that waits for the limit of an hour. */
  async function startWaiting(limits: readonly object[] = [HOURLY]): Promise<void> {
    await write(limits);
    app = await startTestApp({ CONFIG_FILE: file });
    await approve(app.url, key);
    waiting = begin(app.url, 'POST', `${ratePath(key)}?canWait=true`);
    await untilWaiting(app.url, key, 1);
  }

  const limitsNow = async (): Promise<unknown> => (await debugState(app.url, key)).Limits;

  test('that removes a limit serves the check that waits for it', async () => {
    await startWaiting();
    await reload([]);
    expect((await waiting.answer).headers['ratelimit-policy']).toBe('"default";q=10;w=7200');
    expect(await limitsNow()).toBeUndefined();
  });

  test('that raises a limit serves the check, and keeps what was approved', async () => {
    await startWaiting();
    await reload([{ ...HOURLY, max_requests_per_window: 3 }]);
    expect((await waiting.answer).headers.ratelimit).toMatch(/, "hour";r=1;t=3[56]\d\d$/);
    expect(await limitsNow()).toMatchObject([{ NumApprovedThisWindow: 2 }]);
  });

  test('that gives a limit another length keeps what was approved', async () => {
    await startWaiting();
    await reload([{ ...HOURLY, window_millis: 24 * HOUR }]);
    expect(await limitsNow()).toMatchObject([
      { WindowMillis: 24 * HOUR, NumApprovedThisWindow: 1 },
    ]);
    expect(await debugState(app.url, key)).toMatchObject({ NumWaiting: 1 });
    waiting.disconnect();
  });

  test('that gives a limit another name, or counts hits, begins it with nothing approved', async () => {
    await startWaiting();
    await reload([{ ...HOURLY, name: 'hourly' }]);
    expect((await waiting.answer).status).toBe(200);
    expect(await limitsNow()).toMatchObject([{ Name: 'hourly', NumApprovedThisWindow: 1 }]);
    const { name, window_millis } = HOURLY;
    await reload([{ name, window_millis, max_hits_per_window: 5 }]);
    const { status, headers } = await send(app.url, 'POST', ratePath(key));
    expect([status, headers.ratelimit]).toEqual([200, expect.stringMatching(/"hour";r=4;/)]);
  });

  test('that adds a limit applies it to the check that waits', async () => {
    await startWaiting();
    const day = { name: 'day', max_requests_per_window: 1, window_millis: 24 * HOUR };
    await reload([day]);
    expect((await waiting.answer).headers.ratelimit).toMatch(/, "day";r=0;t=86\d\d\d$/);
    const denied = await send(app.url, 'POST', ratePath(key));
    expect(denied.json()).toMatchObject({ limit: 'day' });
  });

  test('that also changes the window of the key itself changes nothing before that window ends', async () => {
    await startWaiting();
    await reload([], { window_millis: HOUR });
    expect(await debugState(app.url, key)).toMatchObject({
      NumWaiting: 1,
      Config: { WindowMillis: 2 * HOUR },
      Limits: [{ Name: 'hour', NumApprovedThisWindow: 1 }],
    });
    waiting.disconnect();
  });
});
