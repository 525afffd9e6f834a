import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import { untilWaiting } from '../../support/debug-state.js';
import { type FaultProxy, startFaultProxy } from '../../support/fault-proxy.js';
import { approve, begin, type PendingRequest, ratePath, send } from '../../support/http-client.js';
import { openConnection, requestText } from '../../support/raw-http.js';
import { type ReplicaProcess, startReplica } from '../../support/replica-process.js';
import { bearer, tokenFile, writeTokens } from '../../support/tokens.js';
import { uniqueKey } from '../../support/unique-key.js';
import { until } from '../../support/until.js';
import type { RedisForTests } from '../../support/use-redis.js';
import type { Target } from './prometheus.js';

const TOKEN = bearer({ token: 'a-token-of-everybody' });
const SCRAPED = { namespace: 'shop', job: 'sluice' };
const PLACES = 2;
const CONNECTIONS = 20;
/**
 * One approval in an hour, and one place to wait, for keys that begin with `tight`. The key `daily` has a further limit
 * of one approval.
 */
const RULES = {
  keys: [
    {
      name: 'tight',
      key_pattern: 'tight.*',
      key_pattern_is_regex: true,
      window_millis: 3_600_000,
      max_requests_per_window: 1,
      max_requests_in_queue: 1,
    },
    {
      name: 'daily',
      key_pattern: 'daily',
      limits: [{ name: 'day', max_requests_per_window: 1, window_millis: 86_400_000 }],
    },
  ],
};
/** More checks than are approved. */
const DENIED = 12;
/** More than one a second over the five minutes of the alert. */
const REJECTED = 500;

/** Two replicas with traffic of every kind. One of them can have lasting faults. */
export class FaultyServices {
  readonly targets: readonly Target[];

  private constructor(
    private readonly redis: RedisForTests,
    private readonly sound: ReplicaProcess,
    private readonly faulty: ReplicaProcess,
    private readonly proxy: FaultProxy,
    private readonly files: { readonly rules: string; readonly tokens: string },
  ) {
    this.targets = [
      { url: sound.url, labels: { ...SCRAPED, pod: 'sluice-1' } },
      { url: faulty.url, labels: { ...SCRAPED, pod: 'sluice-2' }, headers: TOKEN },
    ];
  }

  static async start(folder: string, redis: RedisForTests): Promise<FaultyServices> {
    const address = new URL(redis.url);
    const proxy = await startFaultProxy(Number(address.port));
    address.port = String(proxy.port);
    const rules = join(folder, 'rules.json');
    const otherRules = join(folder, 'other-rules.json');
    await writeFile(rules, JSON.stringify(RULES));
    await writeFile(otherRules, JSON.stringify({ keys: [] }));
    const everybody = { name: 'everybody', scopes: ['check', 'debug'] };
    const token = TOKEN.Authorization.split(' ')[1]!;
    const tokens = await tokenFile(folder, { ...everybody, token });
    const [sound, faulty] = await Promise.all([
      startReplica({
        REDIS_URL: redis.url,
        STORE_TIMEOUT_MILLIS: '30000',
        CONFIG_FILE: rules,
        MAX_WAITERS: String(PLACES),
        MAX_IN_FLIGHT_PER_CONNECTION: '1',
        MAX_CONNECTIONS: String(CONNECTIONS),
      }),
      startReplica({
        REDIS_URL: address.href,
        STORE_OUTAGE_POLICY: 'local',
        CONFIG_FILE: otherRules,
        AUTH_TOKENS_FILE: tokens,
        MAX_IDS_PER_KEY: '1',
      }),
    ]);
    return new FaultyServices(redis, sound, faulty, proxy, { rules: otherRules, tokens });
  }

  /** Begins the lasting faults: invalid files, and an outage of Redis for one replica, so that its policy decides. */
  async break(): Promise<void> {
    await this.#exceedIdsOfKey();
    await writeFile(this.files.rules, 'keys: 5');
    await writeTokens(this.files.tokens, 'no tokens');
    this.proxy.refuse();
    this.proxy.cut();
  }

  /** Checks of every outcome, and rejected requests. */
  async traffic(): Promise<void> {
    await this.#waits();
    await this.#failsWaiters();
    await this.#exceedsFurtherLimit();
    await this.#holdsRequests();
    await this.#dropsConnections();
    await this.#meetsForeignKey();
    await this.#rejectsTokens();
    await send(this.faulty.url, 'POST', ratePath(uniqueKey()), TOKEN);
  }

  stop(): void {
    this.proxy.stop();
  }

  /** Many checks are denied, one finds the queue full, and one waits and is approved. */
  async #waits(): Promise<void> {
    const { url } = this.sound;
    const key = `tight-${uniqueKey()}`;
    const id = await approve(url, key);
    for (let i = 0; i < DENIED; i += 1) await send(url, 'POST', ratePath(key));
    const waiting = this.#wait(key);
    await untilWaiting(url, key, 1);
    await this.#wait(key).answer;
    await send(url, 'DELETE', `${ratePath(key)}/${id}`);
    await waiting.answer;
  }

  /** Takes all places, makes a further waiter fail, and frees the places. */
  async #failsWaiters(): Promise<void> {
    const keys = Array.from({ length: PLACES }, () => `tight-${uniqueKey()}`);
    for (const key of keys) await approve(this.sound.url, key);
    const waiting = keys.map((key) => this.#wait(key));
    for (const key of keys) await untilWaiting(this.sound.url, key, 1);
    const late = `tight-${uniqueKey()}`;
    await approve(this.sound.url, late);
    await this.#wait(late).answer;
    for (const request of waiting) request.disconnect();
    for (const key of keys) await untilWaiting(this.sound.url, key, 0);
  }

  async #exceedsFurtherLimit(): Promise<void> {
    for (let i = 0; i < 2; i += 1) await send(this.sound.url, 'POST', ratePath('daily'));
  }

  /** Two requests at once on one connection that may have one in flight. */
  async #holdsRequests(): Promise<void> {
    const connection = await openConnection(this.sound.url);
    connection.write(requestText('POST', ratePath(uniqueKey())).repeat(2));
    await connection.receives(/request_id[^]*request_id/);
    connection.disconnect();
  }

  async #dropsConnections(): Promise<void> {
    const connections = await Promise.all(
      Array.from({ length: CONNECTIONS + 1 }, () => openConnection(this.sound.url)),
    );
    await Promise.race(connections.map(({ closed }) => closed));
    for (const connection of connections) connection.disconnect();
    await Promise.all(connections.map(({ closed }) => closed));
    // The replica has room again once it has noticed the disconnects.
    const { url } = this.sound;
    await until(() =>
      send(url, 'GET', '/healthz').then(
        () => true,
        () => false,
      ),
    );
  }

  /** Stores a foreign value under the name of a key. */
  async #meetsForeignKey(): Promise<void> {
    await this.redis.client.set('sluice:{foreign}', 'text');
    await send(this.sound.url, 'DELETE', `${ratePath('foreign')}/${randomUUID()}`);
  }

  async #rejectsTokens(): Promise<void> {
    const rejected = Array.from({ length: REJECTED }, () =>
      send(this.faulty.url, 'POST', ratePath('any')),
    );
    await Promise.all(rejected);
  }

  async #exceedIdsOfKey(): Promise<void> {
    const path = ratePath(uniqueKey());
    for (let i = 0; i < 3; i += 1) await send(this.faulty.url, 'POST', path, TOKEN);
  }

  #wait(key: string): PendingRequest {
    return begin(this.sound.url, 'POST', `${ratePath(key)}?canWait=true`);
  }
}
