import { SluiceClient } from '../../../src/client/index.js';
import { untilWaiting } from '../../support/debug-state.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';
import { useReplicas } from '../../support/use-replicas.js';

const start = useReplicas(useRedis());
const WORKERS = 6;

/** Workers that need the only permit, one after the other, while the replica that they ask ends. */
async function workWhile(end: NodeJS.Signals): Promise<{ done: number; most: number }> {
  const [first, second] = await start(2, { WINDOW_MILLIS: '60000', SHUTDOWN_GRACE_MILLIS: '0' });
  const key = uniqueKey();
  const client = new SluiceClient({ url: [first!.url, second!.url] });
  const other = new SluiceClient(second!.url);
  const holder = await other.permit(key, { maxRequests: 1, holdMillis: 60_000 });
  let [done, running, most] = [0, 0, 0];
  const work = async (): Promise<void> => {
    running += 1;
    most = Math.max(most, running);
    await new Promise(setImmediate);
    running -= 1;
    done += 1;
  };
  // A short hold: nobody renews what the replica may have approved while it was killed.
  const options = { holdMillis: 1000 };
  const all = Promise.all(
    Array.from({ length: WORKERS }, () => client.withPermit(key, work, options)),
  );
  await untilWaiting(second!.url, key, WORKERS);

  await first!.kill(end);
  await other.release(key, holder);

  await all;
  return { done, most };
}

test.each(['SIGTERM', 'SIGKILL'] as const)(
  'waits that %s ends on one replica go on at another, one permit at a time',
  async (signal) => {
    expect(await workWhile(signal)).toEqual({ done: WORKERS, most: 1 });
  },
);

test('a replica that stops sends its clients to another before it ends', async () => {
  const [first, second] = await start(2, { SHUTDOWN_DELAY_MILLIS: '60000' });
  const client = new SluiceClient({ url: [first!.url, second!.url], retries: 0 });
  await client.check(uniqueKey());
  first!.signal('SIGTERM');
  await first!.logged(({ msg }) => String(msg).includes('stopping'));

  await client.check(uniqueKey());
  const ended = first!.kill('SIGKILL');

  expect(await client.check(uniqueKey())).toMatchObject({ approved: true });
  await ended;
});
