import { randomUUID } from 'node:crypto';

import { begin, ratePath, send } from '../../support/http-client.js';
import { extent } from '../../support/extent.js';
import { waitingCount } from '../../support/rate-client.js';
import type { ReplicaProcess } from '../../support/replica-process.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import { useRedis } from '../../support/use-redis.js';
import { useReplicas } from '../../support/use-replicas.js';

const WAITERS = extent(12, 100);
const SETTINGS = {
  MAX_REQUESTS: '1',
  WINDOW_MILLIS: '3600000',
  // Long enough for the living replicas to renew their leases on a busy machine.
  REPLICA_LEASE_MILLIS: '2000',
};
const KEEP_MILLIS = 60_000;
/** How long a client waits for an answer before it asks another replica, once it knows of others. */
const PATIENCE_MILLIS = 5000;

/** A client that asks with one id until it is approved, at one replica after the other. */
class KeptWait {
  readonly id = randomUUID();
  /** The replicas that it asks, again and again. */
  #urls: readonly string[];
  #request: ReturnType<typeof begin> | undefined;
  readonly statuses: (number | 'lost')[] = [];

  constructor(
    readonly key: string,
    first: string,
  ) {
    this.#urls = [first];
  }

  /** From now on it asks these replicas, the next time once its present request has been answered or takes too long. */
  moveTo(urls: readonly string[]): void {
    this.#urls = urls;
    this.#leaveLater();
  }

  async approved(): Promise<void> {
    for (let asked = 0; ; asked += 1) {
      const status = await this.#ask(this.#urls[asked % this.#urls.length]!);
      this.statuses.push(status);
      if (status === 200) return;
    }
  }

  async #ask(url: string): Promise<number | 'lost'> {
    const query = `canWait=true&requestId=${this.id}&keepMillis=${KEEP_MILLIS}`;
    this.#request = begin(url, 'POST', `${ratePath(this.key)}?${query}`);
    if (this.#urls.length > 1) this.#leaveLater();
    try {
      return (await this.#request.answer).status;
    } catch {
      return 'lost';
    }
  }

  #leaveLater(): void {
    const request = this.#request;
    setTimeout(() => request?.disconnect(), PATIENCE_MILLIS).unref();
  }
}

describe('kept places', () => {
  const redis = useRedis();
  const start = useReplicas(redis);

  /**
   * Lets clients wait on one of three replicas, disturbs that replica, and then approves one after the other.
   * @returns the ids of the approved ones, in their order, and of all in the order of their arrival
   */
  async function serveAfter(
    disturb: (replica: ReplicaProcess) => Promise<unknown>,
    amid: (replica: ReplicaProcess) => unknown = () => undefined,
  ): Promise<{ approved: string[]; arrived: string[]; waits: KeptWait[] }> {
    const [disturbed, ...others] = await start(3, SETTINGS);
    const key = uniqueKey();
    const [{ url: living }, { url: other }] = others as [ReplicaProcess, ReplicaProcess];
    const release = (id: string) => send(living, 'DELETE', `${ratePath(key)}/${id}`);
    const approved: string[] = [];
    const waits: KeptWait[] = [];
    const ended: Promise<void>[] = [];
    const join = async (url: string): Promise<void> => {
      const wait = new KeptWait(key, url);
      waits.push(wait);
      const end = wait.approved().then(async () => {
        approved.push(wait.id);
        if (approved.length === WAITERS / 2) amid(disturbed!);
        await release(wait.id);
      });
      ended.push(end);
      await until(async () => (await waitingCount(living, key)) === waits.length);
    };
    const first = await send(living, 'POST', ratePath(key));
    for (let i = 0; i < WAITERS; i += 1) await join(disturbed!.url);

    for (const wait of waits) wait.moveTo([living, other]);
    const isDisturbed = disturb(disturbed!);
    await join(living);
    expect((await send(other, 'POST', ratePath(key))).status).toBe(429);
    await release((first.json() as { request_id: string }).request_id);
    await Promise.all([...ended, isDisturbed]);
    return { approved, arrived: waits.map(({ id }) => id), waits };
  }

  // client-failover.test.ts judges that they survive a replica that is killed.
  test('are handed over by a replica that stops', async () => {
    const { approved, arrived, waits } = await serveAfter(async (replica) => {
      expect(await replica.kill('SIGTERM')).toBe(0);
    });
    expect(approved).toEqual(arrived);
    expect(waits.slice(0, WAITERS).map(({ statuses }) => statuses[0])).toEqual(
      Array<number>(WAITERS).fill(503),
    );
  });

  test('move on while their replica is frozen, and stay where they are when it resumes', async () => {
    const { approved, arrived } = await serveAfter(
      (replica) => {
        replica.signal('SIGSTOP');
        return Promise.resolve();
      },
      (replica) => {
        replica.signal('SIGCONT');
      },
    );
    expect(approved).toEqual(arrived);
  });
});
