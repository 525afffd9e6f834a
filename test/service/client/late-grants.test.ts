import { SluiceClient, SluiceTimeoutError } from '../../../src/client/index.js';
import { debugState, untilWaiting } from '../../support/debug-state.js';
import { type FaultProxy, startFaultProxy } from '../../support/fault-proxy.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useApp } from '../../support/use-apps.js';

/** Far longer than the test. A permit that nobody gives back stays held. */
const HELD = { holdMillis: 60_000 };
const GRANTS = 20;

const app = useApp(() => ({ MAX_REQUESTS: '1', WINDOW_MILLIS: '3600000' }));
let proxy: FaultProxy;
/** Asks through the proxy. */
let leaving: SluiceClient;
let staying: SluiceClient;
beforeEach(async () => {
  proxy = await startFaultProxy(Number(new URL(app.url).port));
  leaving = new SluiceClient(`http://127.0.0.1:${proxy.port}`);
  staying = new SluiceClient(app.url);
});
afterEach(() => {
  proxy.stop();
});

const held = async (key: string) => (await debugState(app.url, key)).NumHeld;

type Ask = (
  key: string,
  options: { signal?: AbortSignal; timeoutMillis?: number },
) => Promise<unknown>;

const ways: readonly (readonly [string, Ask])[] = [
  ['wait', (key, options) => leaving.wait(key, { ...HELD, ...options })],
  [
    'withPermit',
    (key, options) => leaving.withPermit(key, () => until(() => false), { ...HELD, ...options }),
  ],
];

describe.each(ways)('a grant that is on its way while its caller leaves: %s', (_, ask) => {
  test.each([0, 5, 25])(
    'is given back after an abort, with %d ms of latency each way',
    async (latency) => {
      proxy.toServer.delay(latency);
      proxy.toClient.delay(latency);
      const rounds = Array.from({ length: GRANTS }, async () => {
        const key = uniqueKey();
        const permit = await staying.permit(key, HELD);
        const gone = new AbortController();
        const asked = ask(key, { signal: gone.signal });
        await untilWaiting(app.url, key, 1);
        await staying.release(key, permit);
        gone.abort();
        await expect(asked).rejects.toBe(gone.signal.reason);
        return key;
      });

      for (const key of await Promise.all(rounds)) {
        await until(async () => (await held(key)) === undefined);
        await untilWaiting(app.url, key, 0);
      }
    },
  );

  test('is given back after a time-out', async () => {
    const key = uniqueKey();
    const permit = await staying.permit(key, HELD);
    const asked = ask(key, { timeoutMillis: 1000 });
    await untilWaiting(app.url, key, 1);
    proxy.toClient.pause();
    await staying.release(key, permit);
    await expect(asked).rejects.toThrow(SluiceTimeoutError);
    expect(await held(key)).toBe(1);

    proxy.toClient.pass();

    await until(async () => (await held(key)) === undefined);
  });
});
