import { startRedisProcess } from '../../../redis-process.js';
import { AS_LIMITER_USER } from '../../../redis-user.js';
import type { Store } from './store.js';

/** One Redis, with its data on disk. */
export async function startStandalone(): Promise<Store> {
  const server = await startRedisProcess({
    configure: () => ['appendonly yes', 'appendfsync no'],
  });
  const serves = async (): Promise<void> => {
    await server.command('PING');
  };
  return {
    servers: [server],
    settings: { REDIS_URL: server.address, ...AS_LIMITER_USER },
    primaries: () => Promise.resolve([server]),
    takesWrites: serves,
    failOver: undefined,
    mend: serves,
    stop: () => server.stop(),
  };
}
