import { SluiceClient } from '../../../clients/node/src/index.js';
import { untilWaiting } from '../../support/debug-state.js';
import { extent } from '../../support/extent.js';
import { uniqueKey } from '../../support/unique-key.js';
import { useRedis } from '../../support/use-redis.js';
import { useReplicas } from '../../support/use-replicas.js';

const WAITERS = extent(12, 100);
/** Longer than the test. */
const HELD = { holdMillis: 600_000 };

const start = useReplicas(useRedis());

/**
 * Waits that one of three replicas holds when it ends. A newcomer asks another replica meanwhile. Each gets the only
 * permit, and releases it.
 * @returns the waits in the order in which they were approved
 */
async function approvedAfter(signal: NodeJS.Signals): Promise<number[]> {
  const [ends, second, third] = await start(3, { MAX_REQUESTS: '1', WINDOW_MILLIS: '3600000' });
  const key = uniqueKey();
  const urls = [ends!.url, second!.url, third!.url];
  const client = new SluiceClient({ url: urls });
  const other = new SluiceClient({ url: third!.url });
  const holder = await other.permit(key, HELD);
  const order: number[] = [];
  const take = async (asking: SluiceClient, number: number): Promise<void> => {
    const decision = await asking.wait(key, HELD);
    if (!decision.approved) throw new Error('denied');
    order.push(number);
    await other.release(key, decision.requestId);
  };

  const waits: Promise<void>[] = [];
  for (let number = 0; number < WAITERS; number += 1) {
    waits.push(take(client, number));
    await untilWaiting(third!.url, key, number + 1);
  }
  if (signal === 'SIGKILL') await ends!.kill(signal);
  else ends!.signal(signal);
  waits.push(take(other, WAITERS));
  await untilWaiting(third!.url, key, WAITERS + 1);
  await other.release(key, holder);
  await Promise.all(waits);
  return order;
}

// What a client does whose replica is frozen, client/kept-waits.test.ts judges with a server that does not answer.
test.each(['SIGKILL', 'SIGTERM'] as const)(
  'waits go on in their places at other replicas if theirs gets a %s',
  async (signal) => {
    expect(await approvedAfter(signal)).toEqual(Array.from({ length: WAITERS + 1 }, (_, i) => i));
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
