import { type Decision, SluiceClient, type WaitProgress } from '../../../src/client/index.js';
import { approve, send } from '../../support/http-client.js';
import { killReplicas, startReplica } from '../../support/replica-process.js';
import { useTemporaryFolder } from '../../support/temporary-folder.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';
import { killGateways } from '../gateways/gateway-process.js';
import { DEFAULT_PROXIES, startDefaultProxy } from './default-proxies.js';

const REPLICAS = 2;
const WAIT_MILLIS = 5 * 60_000;
/** For all that is done besides the wait. */
const OTHER_MILLIS = 60_000;

interface Waited {
  readonly decision: Decision;
  /** What the client was told while it waited. */
  readonly progress: readonly WaitProgress[];
  /** The key afterwards. */
  readonly instance: unknown;
}

const folder = useTemporaryFolder();
const redis = useRedis();
const waits = new Map<string, PromiseSettledResult<Waited>>();

// All wait at the same time, so that this takes five minutes once.
beforeAll(async () => {
  const settings = {
    REDIS_URL: redis.url,
    WINDOW_MILLIS: String(WAIT_MILLIS),
    MAX_REQUESTS: '1',
    // By default nginx sends the name of its upstream.
    ALLOWED_HOSTS: 'replicas',
  };
  const replicas = await Promise.all(
    Array.from({ length: REPLICAS }, () => startReplica(settings)),
  );
  const addresses = replicas.map(({ url }) => url);
  const here = DEFAULT_PROXIES.filter(({ program }) => program !== '');
  const hosts = addresses.map((url) => new URL(url).host);
  const results = await Promise.allSettled(
    here.map(async (proxy) =>
      waitBehind(await startDefaultProxy(proxy, hosts, folder), addresses[0]!),
    ),
  );
  results.forEach((result, i) => waits.set(here[i]!.name, result));
}, WAIT_MILLIS + OTHER_MILLIS);
afterAll(async () => {
  await killGateways();
  await killReplicas();
});

/** Fills the window of a key, and waits for the next one. */
async function waitBehind(url: string, replica: string): Promise<Waited> {
  const key = uniqueKey();
  await approve(replica, key);
  const progress: WaitProgress[] = [];
  const decision = await new SluiceClient({ url }).wait(key, {
    onProgress: (place) => progress.push(place),
  });
  const debug = await send(replica, 'GET', `/debug/${key}`);
  return { decision, progress, instance: debug.json() };
}

describe.each(DEFAULT_PROXIES)('behind $name, with its default time limits,', (proxy) => {
  // `npm test` says if a program is missing.
  (proxy.program === '' ? test.skip : test)('a wait of five minutes ends with its approval', () => {
    expect(waits.get(proxy.name)).toEqual({
      status: 'fulfilled',
      value: {
        decision: expect.objectContaining({ approved: true }) as unknown,
        progress: expect.arrayContaining([
          expect.objectContaining({ position: 1 }) as unknown,
        ]) as unknown,
        instance: expect.objectContaining({
          NumApprovedThisWindow: 1,
          NumWaiting: 0,
        }) as unknown,
      },
    });
  });
});
