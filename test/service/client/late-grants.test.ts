import { setTimeout as delay } from 'node:timers/promises';

import { type Decision, SluiceClient, SluiceTimeoutError } from '../../../src/client/index.js';
import { debugState, untilWaiting } from '../../support/debug-state.js';
import { extent } from '../../support/extent.js';
import { type FaultProxy, startFaultProxy } from '../../support/fault-proxy.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useApp } from '../../support/use-apps.js';

/** Far longer than the test. An approval that nobody gives back stays held. */
const LONG_MILLIS = 600_000;
const HELD = { holdMillis: LONG_MILLIS };
/** Waits that leave at the same time. */
const GROUP = 100;
const GROUPS = extent(1, 10);

const app = useApp(() => ({
  MAX_REQUESTS: '1',
  WINDOW_MILLIS: '3600000',
  MAX_KEEP_MILLIS: String(LONG_MILLIS),
}));
let proxy: FaultProxy;
let staying: SluiceClient;
beforeEach(async () => {
  proxy = await startFaultProxy(Number(new URL(app.url).port));
  staying = new SluiceClient(app.url);
});
afterEach(() => {
  proxy.stop();
});

/** Asks through the proxy. */
const leavingClient = (keepMillis: number) =>
  new SluiceClient({ url: `http://127.0.0.1:${proxy.port}`, keepMillis });
const held = async (key: string) => (await debugState(app.url, key)).NumHeld;
async function untilNothingIsLeft(key: string): Promise<void> {
  await untilWaiting(app.url, key, 0);
  await until(async () => (await held(key)) === undefined);
}

type Ask = (
  client: SluiceClient,
  key: string,
  options: { signal?: AbortSignal; timeoutMillis?: number },
) => Promise<Decision>;

const wait: Ask = (client, key, options) => client.wait(key, { ...HELD, ...options });
const workUntilAborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => {
      reject(signal.reason as Error);
    });
  });
const ways: readonly (readonly [string, number, Ask])[] = [
  ['wait that keeps its place', LONG_MILLIS, wait],
  ['wait in a single request', 0, wait],
  [
    'withPermit',
    LONG_MILLIS,
    (client, key, options) => client.withPermit(key, workUntilAborted, { ...HELD, ...options }),
  ],
];

describe.each(ways)('a grant that is on its way while its caller leaves: %s', (_, keep, ask) => {
  test.each([0, 5, 25])(
    'is given back after an abort, with %d ms of latency each way',
    async (latency) => {
      proxy.toServer.delay(latency);
      proxy.toClient.delay(latency);
      const client = leavingClient(keep);
      for (let group = 0; group < GROUPS; group += 1) {
        const key = uniqueKey();
        const all = { ...HELD, hits: GROUP, maxRequests: GROUP };
        const permit = await staying.permit(key, all);
        const leaving = Array.from({ length: GROUP }, () => new AbortController());
        const asked = leaving.map(({ signal }) => ask(client, key, { signal }));
        await untilWaiting(app.url, key, GROUP);
        await staying.release(key, permit);
        // All are granted. Their answers arrive while they leave.
        const left = leaving.map(async (one, i) => {
          await delay((3 * latency * i) / GROUP);
          one.abort();
        });
        const answers = await Promise.allSettled([...asked, ...left]);

        for (const answer of answers) {
          if (answer.status === 'rejected')
            expect(answer.reason).toHaveProperty('name', 'AbortError');
          else if (answer.value?.approved) await staying.release(key, answer.value.requestId);
        }
        await untilNothingIsLeft(key);
      }
    },
  );

  test('is given back after a time-out', async () => {
    const key = uniqueKey();
    const permit = await staying.permit(key, HELD);
    const asked = ask(leavingClient(keep), key, { timeoutMillis: 1000 });
    await untilWaiting(app.url, key, 1);
    proxy.toClient.pause();
    await staying.release(key, permit);
    await expect(asked).rejects.toThrow(SluiceTimeoutError);
    expect(await held(key)).toBe(1);

    proxy.toClient.pass();

    await untilNothingIsLeft(key);
  });
});

test.each([0, 5, 25])(
  'a wait that is aborted at once leaves nothing behind, with %d ms of latency each way',
  async (latency) => {
    proxy.toServer.delay(latency);
    proxy.toClient.delay(latency);
    const client = leavingClient(LONG_MILLIS);
    const key = uniqueKey();
    await staying.permit(key, { maxRequests: GROUP * GROUPS });

    // Each may be approved at once, if it arrives. Some are overtaken by their DELETE.
    const trials = Array.from({ length: GROUP * GROUPS }, async (_, i) => {
      await delay(i);
      const leaving = new AbortController();
      const asked = client.wait(key, { ...HELD, signal: leaving.signal });
      await delay(((3 * latency + 2) * (i % GROUP)) / GROUP).then(() => {
        leaving.abort();
      });
      const decision = await asked.catch(() => undefined);
      if (decision?.approved) await staying.release(key, decision.requestId);
    });

    await Promise.all(trials);
    await untilNothingIsLeft(key);
  },
);
