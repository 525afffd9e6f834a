import { setTimeout as delay } from 'node:timers/promises';

import {
  type Decision,
  SluiceClient,
  SluiceTimeoutError,
} from '../../../clients/node/src/index.js';
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
const GROUP = extent(100, 250);
const GROUPS = extent(1, 4);
/** On a busy machine. */
const TIMEOUT_MILLIS = 240_000;
/** Not over before a grant is on its way. A test waits for it. */
const GRANTED_MILLIS = 2500;
/** Waits whose DELETE arrives before them. */
const OVERTAKEN = 20;

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
const ways: readonly (readonly [
  way: string,
  groups: number,
  latencies: readonly number[],
  keepMillis: number,
  ask: Ask,
])[] = [
  ['wait that keeps its place', GROUPS, [0, 5, 25], LONG_MILLIS, wait],
  ['wait in a single request', 1, [5], 0, wait],
  [
    'withPermit',
    1,
    [5],
    LONG_MILLIS,
    (client, key, options) => client.withPermit(key, workUntilAborted, { ...HELD, ...options }),
  ],
];

describe.each(ways)(
  'a grant that is on its way while its caller leaves: %s',
  (_, groups, latencies, keep, ask) => {
    test.each(latencies)(
      'is given back after an abort, with %d ms of latency each way',
      async (latency) => {
        proxy.toServer.delay(latency);
        proxy.toClient.delay(latency);
        const client = leavingClient(keep);
        for (let group = 0; group < groups; group += 1) {
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
      TIMEOUT_MILLIS,
    );

    test('is given back after a time-out', async () => {
      const key = uniqueKey();
      const permit = await staying.permit(key, HELD);
      const asked = ask(leavingClient(keep), key, { timeoutMillis: GRANTED_MILLIS });
      await untilWaiting(app.url, key, 1);
      proxy.toClient.pause();
      await staying.release(key, permit);
      await expect(asked).rejects.toThrow(SluiceTimeoutError);
      expect(await held(key)).toBe(1);

      proxy.toClient.pass();

      await untilNothingIsLeft(key);
    });
  },
);

test('waits that arrive after their DELETE, which was sent after them, leave no place behind', async () => {
  const key = uniqueKey();
  await staying.permit(key, HELD);
  proxy.toServer.delayFrom('POST ', 4000);
  const client = leavingClient(LONG_MILLIS);
  const leaving = new AbortController();
  const { signal } = leaving;
  const ask = () => client.wait(key, { ...HELD, signal }).catch(() => undefined);
  const asked = [ask()];
  const bytes = await until(() => proxy.toServer.bytesIn || undefined);
  for (let i = 1; i < OVERTAKEN; i += 1) asked.push(ask());
  await until(() => proxy.toServer.bytesIn === OVERTAKEN * bytes);

  leaving.abort();
  await Promise.all(asked);
  // The releases are answered: there is no such request. The next ones are stopped.
  await until(() => proxy.toClient.bytesIn > 0);
  proxy.toServer.pause();
  await untilWaiting(app.url, key, OVERTAKEN);
  proxy.toServer.pass();

  await untilWaiting(app.url, key, 0);
});
