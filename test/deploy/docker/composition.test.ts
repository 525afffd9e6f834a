import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { describeWithDocker } from '../../support/docker.js';
import { begin, ratePath, send } from '../../support/http-client.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { isExpected, Load } from '../load.js';
import { allWith, NOT_PUBLISHED, PUBLISHED, statusesOf } from '../published.js';
import { buildImage } from './build-image.js';
import { Composition } from './composition.js';

const START_TIMEOUT_MILLIS = 300_000;
const ONE_MINUTE_MILLIS = 60_000;
/** So long that who waits for the second one waits for more than a minute. */
const WINDOW_MILLIS = 66_000;
const MAX_REQUESTS = 50;
/** What four times the maximum of checks are answered with. */
const EXACT = { 200: MAX_REQUESTS, 429: 3 * MAX_REQUESTS };

function countOf(statuses: readonly number[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const status of statuses) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

describeWithDocker('the composition', () => {
  let composition: Composition;
  const folder = useTemporaryFolder();
  const writeRules = (maximum: number) =>
    writeFile(
      join(folder, 'rules.yaml'),
      `keys: [{ key_pattern: ruled, max_requests_per_window: ${maximum} }]`,
    );
  beforeAll(async () => {
    // The replicas run as another user.
    await Promise.all([buildImage(), writeRules(0), chmod(folder, 0o755)]);
    composition = await Composition.up({
      WINDOW_MILLIS: String(WINDOW_MILLIS),
      MAX_REQUESTS: String(MAX_REQUESTS),
      SHUTDOWN_GRACE_MILLIS: '2000',
      SLUICE_RULES: folder,
    });
  }, START_TIMEOUT_MILLIS);
  // Where it did not come up it is down already, and there is none.
  afterAll(() => (composition as Composition | undefined)?.down(), ONE_MINUTE_MILLIS);

  /** Four times the maximum of checks of a key, all at the same time. */
  async function checkTooOften(key: string): Promise<number[]> {
    const answers = await Promise.all(
      Array.from({ length: 4 * MAX_REQUESTS }, () => send(composition.url, 'POST', ratePath(key))),
    );
    return answers.map(({ status }) => status);
  }

  test(
    'lets a wait outlast a minute, and keeps limits exact meanwhile',
    async () => {
      const [waited, other] = [uniqueKey(), uniqueKey()];
      expect(countOf(await checkTooOften(waited))).toEqual(EXACT);
      const waiting = begin(composition.url, 'POST', `${ratePath(waited)}?canWait=true`);
      const startedAt = performance.now();
      await composition.untilWaiting(waited, 1);

      expect(countOf(await checkTooOften(other))).toEqual(EXACT);

      expect((await waiting.answer).status).toBe(200);
      expect(performance.now() - startedAt).toBeGreaterThan(ONE_MINUTE_MILLIS);
    },
    3 * ONE_MINUTE_MILLIS,
  );

  test('publishes nothing but checks and health', async () => {
    expect(await statusesOf(composition.url, PUBLISHED)).toEqual(allWith(200, PUBLISHED));
    expect(await statusesOf(composition.url, NOT_PUBLISHED)).toEqual(allWith(404, NOT_PUBLISHED));
  });

  test('serves the dashboard to administrators, and no checks', async () => {
    const INNER = ['/ui', '/debug', '/metrics', '/readyz'];
    expect(await statusesOf(composition.adminUrl, INNER)).toEqual(allWith(200, INNER));
    const { status } = await send(composition.adminUrl, 'POST', ratePath(uniqueKey()));
    expect(status).toBe(404);
  });

  test('takes its rules from a folder, and changed ones without a restart', async () => {
    expect((await send(composition.url, 'POST', ratePath('ruled'))).status).toBe(429);
    await writeRules(1_000_000);

    await until(
      async () => (await send(composition.url, 'POST', ratePath('ruled'))).status === 200,
    );
  });

  test(
    'uses all three replicas, which know that a client has disconnected',
    async () => {
      const replicas = await composition.replicas();
      expect(replicas).toHaveLength(3);

      // A replica that the balancer finds busy gets no checks for a moment, so there may be several rounds.
      await until(async () => {
        const key = uniqueKey();
        await checkTooOften(key);
        const waiting = Array.from({ length: 6 }, () =>
          begin(composition.url, 'POST', `${ratePath(key)}?canWait=true`),
        );
        await composition.untilWaiting(key, 6);
        for (const request of waiting) request.disconnect();
        await composition.untilWaiting(key, 0);
        const logs = await Promise.all(replicas.map((replica) => composition.log(replica)));
        return logs.every((log) => log.includes('disconnected while waiting'));
      }, 2 * ONE_MINUTE_MILLIS);
    },
    4 * ONE_MINUTE_MILLIS,
  );

  test(
    'is restarted replica by replica under load, and no request fails',
    async () => {
      const keys = [uniqueKey(), uniqueKey()];
      const full = uniqueKey();
      await checkTooOften(full);
      const load = new Load(composition.url, [
        ...keys.map((key) => ({ key, maxRequests: MAX_REQUESTS, canWait: false, clients: 2 })),
        // They wait when their replica stops, and are turned away when its grace is over.
        { key: full, maxRequests: MAX_REQUESTS, canWait: true, clients: 3 },
      ]);
      for (const replica of await composition.replicas()) await composition.restart(replica);
      await load.stop();

      expect(load.asked.filter(({ answer }) => !answer || !isExpected(answer))).toEqual([]);
      const waits = load.asked.filter(({ sort }) => sort.canWait);
      expect(waits.map(({ answer }) => answer?.status)).toContain(503);
      for (const replica of await composition.replicas()) {
        expect(await composition.log(replica)).toContain('"msg":"stopped"');
      }
    },
    4 * ONE_MINUTE_MILLIS,
  );
});
