import { killReplicas, type ReplicaProcess, startReplica } from './replica-process.js';
import type { RedisForTests } from './use-redis.js';

type Environment = Readonly<Record<string, string>>;

/** Replicas in processes of their own, on the Redis of this file. @param after which tests they end: each one, by default */
export function useReplicas(
  redis: RedisForTests,
  after = afterEach,
): (count: number, environment: Environment) => Promise<ReplicaProcess[]> {
  after(killReplicas);
  return (count, environment) =>
    Promise.all(
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
