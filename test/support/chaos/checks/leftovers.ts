import type { RedisProcess } from '../../redis-process.js';
import { lingeringNames } from '../../expiring-names.js';
import { lastWithin } from '../within.js';

/**
 * The mutex of a leader that was killed goes ten seconds later; keys go after three idle windows. What
 * stays longer than this stays for ever.
 */
const GONE_WITHIN_MILLIS = 60_000;

/**
 * Names that stay on a server although nobody uses them any more.
 * @param isQuick accepts names that will expire by themselves; otherwise every name must be gone
 */
export async function leftovers(
  servers: readonly RedisProcess[],
  isQuick = false,
): Promise<string[]> {
  const namesOn = async (server: RedisProcess): Promise<string[]> => {
    if (isQuick) {
      // In a cluster, a replica shows its names and says nothing of them. Its primary has the same.
      const [role] = (await server.command('ROLE')) as [string];
      return role === 'master' ? lingeringNames((...command) => server.command(...command)) : [];
    }
    const found = (await server.command('KEYS', '*')) as string[];
    return found.map((name) => `${name} is left`);
  };
  const names = async (): Promise<string[]> => {
    const onEach = await Promise.all(
      servers.map(async (server) =>
        (await namesOn(server)).map((name) => `${name} on ${server.address}`),
      ),
    );
    return onEach.flat();
  };
  return lastWithin(GONE_WITHIN_MILLIS, names, (found) => found.length === 0);
}
