import { startRedisSentinel } from '../../../support/redis-sentinel.js';
import { keepData, type Store } from './store.js';

/** Longer than any stall, so that a stall is no failover. */
const DOWN_AFTER_MILLIS = 60_000;

/** A primary, two replicas of it, and three Sentinels. */
export async function startSentinels(): Promise<Store> {
  const setup = await startRedisSentinel();
  await Promise.all([
    ...setup.servers.map(keepData),
    ...setup.sentinels.map((sentinel) =>
      sentinel.command(
        ...(['SENTINEL', 'SET', setup.masterName] as const),
        'down-after-milliseconds',
        DOWN_AFTER_MILLIS,
      ),
    ),
  ]);
  return {
    servers: setup.servers,
    settings: setup.settings,
    primaries: async () => [await setup.primary()],
    takesWrites: async () => {
      await setup.primary();
    },
    failOver: async () => {
      await setup.failover();
    },
    mend: () => setup.settled(),
    stop: () => setup.stop(),
  };
}
