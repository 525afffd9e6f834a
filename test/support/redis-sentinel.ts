import { type RedisProcess, startRedisProcess, stopAll } from './redis-process.js';
import { AS_LIMITER_USER, rulesIn } from './redis-user.js';
import { until } from './until.js';

const MASTER_NAME = 'sluice-primary';
const QUORUM = 2;
const REPLICAS = 2;
const SENTINELS = 3;
/** Three times the failover-timeout. */
const FAILOVER_GIVEN_UP_MILLIS = 9000;
/**
 * How often Sentinels ask servers and announce themselves, much more often than the ten and two seconds
 * that are fixed outside of tests; and how long a Sentinel that noticed a pause stays passive.
 */
const PERIODS = { 'INFO-PERIOD': 500, 'PUBLISH-PERIOD': 250, 'TILT-PERIOD': 2_000 };

type Fields = Readonly<Record<string, string>>;

export interface SentinelCredentials {
  /** The password of the primary and its replicas. */
  readonly password?: string;
  readonly sentinelPassword?: string;
}

/** Starts a primary with two replicas and three Sentinels, and resolves when it has settled. */
export async function startRedisSentinel(
  credentials: SentinelCredentials = {},
): Promise<RedisSentinel> {
  const primary = await startServer(credentials);
  const replicas = await Promise.all(
    Array.from({ length: REPLICAS }, () => startServer(credentials, primary)),
  );
  const sentinels = await Promise.all(
    Array.from({ length: SENTINELS }, () => startSentinel(credentials, primary)),
  );
  const setup = new RedisSentinel([primary, ...replicas], sentinels);
  await setup.settled();
  return setup;
}

function startServer(
  { password }: SentinelCredentials,
  primary?: RedisProcess,
): Promise<RedisProcess> {
  return startRedisProcess({
    configure: () => [
      'repl-diskless-sync-delay 0',
      ...(password ? [`requirepass ${password}`, `masterauth ${password}`] : []),
      ...(primary ? [`replicaof 127.0.0.1 ${primary.port}`] : []),
    ],
    ...(password && { client: { password } }),
  });
}

async function startSentinel(
  { password, sentinelPassword }: SentinelCredentials,
  primary: RedisProcess,
): Promise<RedisProcess> {
  const sentinel = await startRedisProcess({
    sentinel: true,
    userRules: rulesIn('sentinel-user'),
    configure: () => [
      `sentinel monitor ${MASTER_NAME} 127.0.0.1 ${primary.port} ${QUORUM}`,
      `sentinel down-after-milliseconds ${MASTER_NAME} 800`,
      `sentinel failover-timeout ${MASTER_NAME} 3000`,
      `sentinel parallel-syncs ${MASTER_NAME} 1`,
      ...(password ? [`sentinel auth-pass ${MASTER_NAME} ${password}`] : []),
      ...(sentinelPassword
        ? [`requirepass ${sentinelPassword}`, `sentinel sentinel-pass ${sentinelPassword}`]
        : []),
    ],
    ...(sentinelPassword && { client: { password: sentinelPassword } }),
  });
  await sentinel.command('SENTINEL', 'DEBUG', ...Object.entries(PERIODS).flat());
  return sentinel;
}

/** A primary, its replicas and their Sentinels on this machine. */
export class RedisSentinel {
  readonly masterName = MASTER_NAME;

  constructor(
    /** The primary and its replicas, whatever their present roles. */
    readonly servers: readonly RedisProcess[],
    readonly sentinels: readonly RedisProcess[],
  ) {}

  /** The settings of a service that uses it. */
  get settings(): Record<string, string> {
    return {
      REDIS_MODE: 'sentinel',
      REDIS_URL: this.sentinels.map(({ url }) => url).join(),
      REDIS_SENTINEL_MASTER: this.masterName,
      ...AS_LIMITER_USER,
    };
  }

  /**
   * The responsive server that is the primary for all responsive Sentinels and for itself. If the primary has
   * been killed or suspended, or during a failover, this waits for the switch.
   */
  async primary(): Promise<RedisProcess> {
    return until(async () => {
      const masters = await Promise.all(responsive(this.sentinels).map(masterSeenBy));
      const primary = responsive(this.servers).find(({ port }) =>
        masters.every(({ flags, port: known }) => flags === 'master' && Number(known) === port),
      );
      return primary && (await roleOf(primary))[0] === 'master' && primary;
    });
  }

  /**
   * Waits until every responsive server other than the primary copies from it, and every responsive
   * Sentinel knows that and all other Sentinels.
   */
  async settled(): Promise<void> {
    await until(async () => {
      const primary = await this.primary();
      const replicas = responsive(this.servers).filter((server) => server !== primary);
      const checks = [
        ...replicas.map((replica) => copiesFrom(replica, primary)),
        ...responsive(this.sentinels).map((sentinel) => knows(sentinel, replicas)),
      ];
      return (await Promise.all(checks)).every(Boolean);
    });
  }

  /** Waits until each responsive server has what the primary has now, so that a failover loses none of it. */
  async replicated(): Promise<void> {
    await this.settled();
    const primary = await this.primary();
    const [, offset] = await roleOf(primary);
    const replicas = responsive(this.servers).length - 1;
    await until(async () => {
      const [, , copies = []] = (await roleOf(primary)) as [string?, number?, string[][]?];
      const caughtUp = copies.filter(([, , copied]) => Number(copied) >= Number(offset));
      return caughtUp.length === replicas;
    });
  }

  /** Makes the Sentinels promote a replica, and resolves to it when all Sentinels know. */
  async failover(): Promise<RedisProcess> {
    const before = await this.primary();
    let askedAt = -Infinity;
    return until(async () => {
      // Sentinels give up a failover if a busy machine is too slow for it.
      if (performance.now() - askedAt > FAILOVER_GIVEN_UP_MILLIS) {
        await this.#askForFailover();
        askedAt = performance.now();
      }
      const now = await this.primary();
      return now !== before && now;
    });
  }

  async #askForFailover(): Promise<void> {
    const [sentinel] = responsive(this.sentinels);
    await until(async () => {
      try {
        return (await sentinel!.command('SENTINEL', 'FAILOVER', MASTER_NAME)) === 'OK';
      } catch (error) {
        // These errors come soon after another failover.
        if (error instanceof Error && /INPROG|NOGOODSLAVE/.test(error.message)) return false;
        throw error;
      }
    });
  }

  stop(): Promise<void> {
    return stopAll([...this.servers, ...this.sentinels]);
  }
}

function responsive(servers: readonly RedisProcess[]): RedisProcess[] {
  return servers.filter((server) => server.responsive);
}

async function masterSeenBy(sentinel: RedisProcess): Promise<Fields> {
  return fieldsOf((await sentinel.command('SENTINEL', 'MASTER', MASTER_NAME)) as string[]);
}

async function knows(sentinel: RedisProcess, replicas: readonly RedisProcess[]): Promise<boolean> {
  const { 'num-other-sentinels': others } = await masterSeenBy(sentinel);
  const reply = (await sentinel.command('SENTINEL', 'REPLICAS', MASTER_NAME)) as string[][];
  const linked = reply
    .map(fieldsOf)
    .filter(({ flags, 'master-link-status': link }) => flags === 'slave' && link === 'ok');
  return (
    Number(others) === SENTINELS - 1 &&
    replicas.every((replica) => linked.some(({ port }) => Number(port) === replica.port))
  );
}

/** https://redis.io/docs/latest/commands/role/ */
export async function roleOf(server: RedisProcess): Promise<unknown[]> {
  try {
    return (await server.command('ROLE')) as unknown[];
  } catch (error) {
    // Sentinels cut the connections to a server when they change its role.
    if (error instanceof Error && error.message === 'Connection is closed.') return [];
    throw error;
  }
}

async function copiesFrom(replica: RedisProcess, primary: RedisProcess): Promise<boolean> {
  const [role, , port, state] = await roleOf(replica);
  return role === 'slave' && port === primary.port && state === 'connected';
}

function fieldsOf(reply: readonly string[]): Fields {
  const fields: Record<string, string> = {};
  for (let i = 0; i < reply.length; i += 2) fields[reply[i]!] = reply[i + 1]!;
  return fields;
}
