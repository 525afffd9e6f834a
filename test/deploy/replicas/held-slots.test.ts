import { say } from '../../support/chaos/expect-no-violations.js';
import { Random } from '../../support/chaos/random.js';
import { debugState } from '../../support/debug-state.js';
import { extent } from '../../support/extent.js';
import { HoldingWorkers } from '../../support/holding-workers.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';
import { useReplicas } from '../../support/use-replicas.js';

const SLOTS = 5;
const HOLD_MILLIS = 2000;
const WORK_MILLIS = extent(5000, 26_000);

const redis = useRedis();
const start = useReplicas(redis);

test.each([
  ['many windows end during a hold', '300'],
  ['no window ends', '3600000'],
])(
  'of 40 workers at three replicas, five hold a slot at once, whoever dies, while %s',
  async (_which, windowMillis) => {
    const replicas = await start(3, {
      WINDOW_MILLIS: windowMillis,
      MAX_REQUESTS: '1',
      MAX_REQUESTS_IN_QUEUE: '100',
    });
    const key = uniqueKey();
    const workers = new HoldingWorkers({
      urls: replicas.map(({ url }) => url),
      key,
      slots: SLOTS,
      holdMillis: HOLD_MILLIS,
      workers: 40,
      random: new Random(1),
    });
    const account = await workers.work(WORK_MILLIS);
    say(`held slots: ${JSON.stringify(account)}`);
    expect(account.unexpected).toEqual([]);
    expect(account.mostAtOnce).toBeLessThanOrEqual(SLOTS);
    expect(account.longestIdle).toBeLessThanOrEqual(HOLD_MILLIS);
    // Otherwise little was tried.
    expect(account.mostAtOnce).toBeGreaterThan(1);
    expect(account.answered).toBeGreaterThan(2 * SLOTS);
    expect(account.killed).toBeGreaterThanOrEqual(SLOTS);

    await until(async () => {
      const { NumHeld = 0, NumWaiting = 0 } = await debugState(replicas[0]!.url, key);
      return NumHeld === 0 && NumWaiting === 0;
    });
  },
);
