import type { RedisForTests } from './use-redis.js';
import { killReplicas, type ReplicaProcess, startReplica } from './replica-process.js';

type Environment = Readonly<Record<string, string>>;

/** Replicas in processes of their own, on the Redis of this file; ended after each test. */
export function useReplicas(
  redis: RedisForTests,
): (count: number, environment: Environment) => Promise<ReplicaProcess[]> {
  afterEach(killReplicas);
  return (count, environment) =>
    Promise.all(
      Array.from({ length: count }, () =>
        startReplica({
          REDIS_URL: redis.url,
          // How soon a busy test machine answers is not what these tests are about.
          STORE_TIMEOUT_MILLIS: '30000',
          ...environment,
        }),
      ),
    );
}
