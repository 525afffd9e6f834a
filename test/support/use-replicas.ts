import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { killReplicas, type ReplicaProcess, startReplica } from './replica-process.js';
import { useTemporaryFolder } from './temporary-folder.js';
import { uniqueKey } from './unique-key.js';
import type { RedisForTests } from './use-redis.js';

type Environment = Readonly<Record<string, string>>;

/** So long that no window ends during a test. */
const ONE_HOUR = '3600000';

/** Replicas in processes of their own, on the Redis of this file. They end after each test. */
export function useReplicas(
  redis: RedisForTests,
): (count: number, environment: Environment) => Promise<ReplicaProcess[]> {
  afterEach(killReplicas);
  return (count, environment) => startSeveral(redis, count, environment);
}

interface Sharing<Name extends string> {
  readonly count?: number;
  /** What the rules say of keys that begin with a name. */
  readonly limits?: Readonly<Record<Name, object>>;
  readonly environment?: Environment;
}

interface SharedReplicas<Name extends string> {
  readonly replicas: readonly ReplicaProcess[];
  /** A key that no other test uses, with these limits. */
  readonly keyOf: (limits: Name) => string;
  /** Starts another replica like these. */
  readonly startAnother: () => Promise<ReplicaProcess>;
}

/**
 * Replicas, three by default, for all tests of a file. A key has windows of an hour and one approval in each, unless it
 * begins with the name of other limits, or a check sets another maximum.
 */
export function useSharedReplicas<Name extends string>(
  redis: RedisForTests,
  { count = 3, limits, environment = {} }: Sharing<Name> = {},
): SharedReplicas<Name> {
  const folder = useTemporaryFolder();
  const CONFIG_FILE = join(folder, 'rules.json');
  const settings = { MAX_REQUESTS: '1', WINDOW_MILLIS: ONE_HOUR, CONFIG_FILE, ...environment };
  const replicas: ReplicaProcess[] = [];
  beforeAll(async () => {
    const keys = Object.entries<object>(limits ?? {}).map(([name, rule]) => ({
      key_pattern: `${name}-.*`,
      key_pattern_is_regex: true,
      ...rule,
    }));
    await writeFile(CONFIG_FILE, JSON.stringify({ keys }));
    replicas.push(...(await startSeveral(redis, count, settings)));
  });
  afterAll(killReplicas);
  return {
    replicas,
    keyOf: (name) => `${name}-${uniqueKey()}`,
    startAnother: async () => {
      const [another] = await startSeveral(redis, 1, settings);
      return another!;
    },
  };
}

function startSeveral(
  redis: RedisForTests,
  count: number,
  environment: Environment,
): Promise<ReplicaProcess[]> {
  return Promise.all(
    Array.from({ length: count }, () =>
      startReplica({
        REDIS_URL: redis.url,
        // These tests are not about the speed of a busy machine.
        STORE_TIMEOUT_MILLIS: '30000',
        ...environment,
      }),
    ),
  );
}
