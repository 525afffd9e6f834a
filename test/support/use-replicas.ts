import type { RedisForTests } from './use-redis.js';
import { killReplicas, type ReplicaProcess, startReplica } from './replica-process.js';

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

/**
 * Three replicas with windows of an hour and one approval in each, for all tests of a `describe` that does not stop
 * them. A test sets another maximum with its checks.
 */
export function useSharedReplicas(redis: RedisForTests): readonly ReplicaProcess[] {
  const replicas: ReplicaProcess[] = [];
  beforeAll(async () => {
    replicas.push(
      ...(await startSeveral(redis, 3, { MAX_REQUESTS: '1', WINDOW_MILLIS: ONE_HOUR })),
    );
  });
  afterAll(killReplicas);
  return replicas;
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
