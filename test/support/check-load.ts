import { setTimeout as delay } from 'node:timers/promises';

import { KeyNaming } from '../../src/redis/shared/key-names.js';
import { checkMany } from './bulk-client.js';
import { hasCaughtUp } from './has-caught-up.js';
import { requestRate } from './rate-client.js';
import type { RedisProcess } from './redis-process.js';
import { uniqueKey } from './unique-key.js';
import { until } from './until.js';

const CLIENTS = 12;
const KEYS_AT_ONCE = 3;
/** More keys than a cluster has primaries, so that each of them decides some. */
const KEYS_OF_A_PROBE = 64;
/** Of a client after each answer: the load goes on beside faults, and is not to be the greatest possible one. */
const PAUSE_MILLIS = 20;

const naming = new KeyNaming('sluice:');

interface Replica {
  readonly url: string;
}

export interface CheckLoadOptions {
  /** At least two. Their windows do not end during the test. */
  readonly replicas: readonly Replica[];
  /** Of approvals for each key. */
  readonly maximum: number;
  readonly nextKey?: () => string;
}

/** A fault under load. */
export interface LoadedFault {
  /** The keys that may lose approvals: keys that are not full when the fault begins, or all keys. Default: none. */
  readonly loses?: 'open' | 'all';
  readonly happen: () => Promise<unknown>;
}

interface LoadedKey {
  readonly key: string;
  /** The ids of the approvals that reached clients. */
  readonly approved: Set<string>;
  isFull: boolean;
  /** A fault may have lost approvals of it. */
  mayHaveLost: boolean;
}

/** Clients that check a few keys at a time, each key until it is full, and an account of their answers. */
export class CheckLoad {
  answered = 0;
  readonly #keys: LoadedKey[] = [];
  readonly #open: LoadedKey[];
  readonly #ids = new Set<string>();
  readonly #violations: string[] = [];
  readonly #clients: Promise<unknown>;
  #fault: LoadedFault | undefined;
  #hasFailed = false;
  #isOver = false;

  constructor(private readonly options: CheckLoadOptions) {
    this.#open = Array.from({ length: KEYS_AT_ONCE }, () => this.#newKey());
    this.#clients = Promise.all(Array.from({ length: CLIENTS }, (_, i) => this.#run(i)));
    // `stop` and `end` report it.
    this.#clients.catch(() => undefined);
  }

  /** Resolves when `count` more checks have been decided. */
  async decide(count: number): Promise<void> {
    const target = this.answered + count;
    // A client that is not answered ends the wait with its error.
    await Promise.race([this.#clients, until(() => this.answered >= target)]);
  }

  /** Lets a fault happen, during which checks may get a 503, and resolves when all replicas decide again. */
  async endure(fault: LoadedFault): Promise<void> {
    this.#fault = fault;
    this.#markLost(fault);
    await fault.happen();
    await this.probe();
    this.#markLost(fault);
    this.#fault = undefined;
  }

  /** Resolves when each replica decides checks at every primary. */
  async probe(): Promise<void> {
    for (const { url } of this.options.replicas) {
      await until(async () => {
        const checks = Array.from({ length: KEYS_OF_A_PROBE }, () => ({ key: uniqueKey() }));
        return (await checkMany(url, checks)).every(({ status }) => status === 200);
      });
    }
  }

  /** Stops the clients after their answers, and fills the keys that are not full yet. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#clients;
    const [replica] = this.options.replicas;
    for (const open of this.#open) while (!open.isFull) await this.#check(replica!, open);
  }

  /** Stops the clients, if a test has failed before. */
  async end(): Promise<void> {
    this.#isOver = true;
    await this.#clients.catch(() => undefined);
  }

  /**
   * What is wrong with the answers: one that is neither a 200 nor a 429, a key with more approvals than its maximum, or
   * other approvals in Redis than those that reached clients.
   * @param primaryOf the server with a name of Redis
   */
  async violations(primaryOf: (name: string) => Promise<RedisProcess>): Promise<string[]> {
    const { replicas, maximum } = this.options;
    for (const replica of replicas) await hasCaughtUp(replica);
    const found = [...this.#violations];
    for (const { key, approved, mayHaveLost } of this.#keys) {
      const names = naming.namesOf(key);
      const most = mayHaveLost ? 2 * maximum : maximum;
      const least = this.#hasFailed ? 0 : maximum;
      if (approved.size < least || approved.size > most) {
        found.push(`${key}: ${approved.size} approvals reached clients`);
      }
      if (mayHaveLost) continue;
      const server = await primaryOf(names.state);
      const stored = (await server.command('SMEMBERS', names.requests)) as string[];
      const onlyStored = stored.filter((id) => !approved.has(id));
      const onlyTold = [...approved].filter((id) => !stored.includes(id));
      if (onlyStored.length > 0) found.push(`${key}: only Redis has ${onlyStored.join()}`);
      if (onlyTold.length > 0) found.push(`${key}: Redis does not have ${onlyTold.join()}`);
    }
    return found;
  }

  async #run(client: number): Promise<void> {
    const { replicas } = this.options;
    while (!this.#isOver) {
      await this.#check(replicas[client % replicas.length]!, this.#open[client % KEYS_AT_ONCE]!);
      await delay(PAUSE_MILLIS);
    }
  }

  async #check({ url }: Replica, asked: LoadedKey): Promise<void> {
    const before = this.#fault;
    const { status, requestId } = await requestRate(url, asked.key).answer;
    if (status === 503 && (before ?? this.#fault)) {
      this.#hasFailed = true;
      return;
    }
    this.answered += 1;
    if (status === 200) {
      if (this.#ids.has(requestId!)) this.#violations.push(`${requestId} was approved twice`);
      this.#ids.add(requestId!);
      asked.approved.add(requestId!);
    } else if (status === 429) {
      this.#replace(asked);
    } else {
      this.#violations.push(`${asked.key}: ${status}`);
    }
  }

  #replace(key: LoadedKey): void {
    key.isFull = true;
    const index = this.#open.indexOf(key);
    if (index !== -1 && !this.#isOver) this.#open[index] = this.#newKey();
  }

  #newKey(): LoadedKey {
    const key: LoadedKey = {
      key: (this.options.nextKey ?? uniqueKey)(),
      approved: new Set(),
      isFull: false,
      mayHaveLost: this.#fault?.loses !== undefined,
    };
    this.#keys.push(key);
    return key;
  }

  #markLost({ loses }: LoadedFault): void {
    if (loses === undefined) return;
    for (const key of loses === 'all' ? this.#keys : this.#open) key.mayHaveLost = true;
  }
}
