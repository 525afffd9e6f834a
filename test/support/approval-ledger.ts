import type { Redis } from 'ioredis';

import { KeyNaming } from '../../src/redis/key-names.js';
import { until } from './until.js';

/**
 * An account of everything the scripts did to one limiter key, taken from Redis's own MONITOR: the
 * commands in the order in which they ran, so that windows are Redis's windows and order is Redis's
 * order. What breaks an invariant is written down in `violations`.
 */
export class ApprovalLedger {
  readonly violations: string[] = [];
  /** The ids approved, in order, those from the queue and those at once alike. */
  readonly approved: string[] = [];
  /** The ids that ever joined the queue, in order of arrival. */
  readonly joined: string[] = [];
  /** The ids approved from the queue, in order. */
  readonly served: string[] = [];
  windows = 0;
  #current = new Set<string>();
  readonly #everApproved = new Set<string>();
  #queue: { readonly id: string; readonly ticket: number }[] = [];
  #monitor: Redis | undefined;

  private constructor(
    private readonly key: string,
    private readonly maxRequests: number,
  ) {}

  static async open(client: Redis, key: string, maxRequests: number): Promise<ApprovalLedger> {
    const ledger = new ApprovalLedger(key, maxRequests);
    const names = new KeyNaming('sluice:').namesOf(key);
    const monitor = await startMonitor(client);
    ledger.#monitor = monitor;
    monitor.on('monitor', (_time: string, [command = '', name, ...args]: string[]) => {
      if (name === names.requests) ledger.#onRequests(command.toLowerCase(), args);
      if (name === names.waiting) ledger.#onWaiting(command.toLowerCase(), args);
      if (name === names.queue && command.toLowerCase() === 'unlink') ledger.#queue = [];
    });
    return ledger;
  }

  /** Approvals of the current window that have not been released. */
  get inWindow(): number {
    return this.#current.size;
  }

  /** Waits until everything that has happened up to now is written down, and ends the account. */
  async close(client: Redis): Promise<void> {
    const mark = `ledger-${this.key}`;
    let seen = false;
    this.#monitor?.on('monitor', (_time: string, args: string[]) => (seen ||= args[1] === mark));
    await client.echo(mark);
    await until(() => seen);
    this.#monitor?.disconnect();
  }

  #onRequests(command: string, ids: string[]): void {
    if (command === 'unlink' || command === 'rename') {
      this.windows += 1;
      this.#current.clear();
    } else if (command === 'srem') {
      for (const id of ids) this.#current.delete(id);
    } else if (command === 'sadd') {
      this.#onApproved(ids);
    }
  }

  #onApproved(ids: string[]): void {
    // They leave the queue after that.
    const fromQueue = ids.every((id) => this.#queue.some((waiter) => waiter.id === id));
    if (fromQueue) {
      this.served.push(...ids);
    } else if (this.#queue.length > 0) {
      this.#note(`approved ${ids.join()} while ${this.#queue.length} waited`);
    }
    for (const id of ids) {
      if (this.#everApproved.has(id)) this.#note(`approved ${id} twice`);
      else this.approved.push(id);
      this.#everApproved.add(id);
      this.#current.add(id);
    }
    if (this.#current.size > this.maxRequests) this.#note(`${this.#current.size} in one window`);
  }

  #onWaiting(command: string, args: string[]): void {
    if (command === 'hset') {
      for (let i = 0; i < args.length; i += 2) this.#onJoined(args[i] ?? '', Number(args[i + 1]));
    } else if (command === 'hdel') {
      const gone = new Set(args);
      this.#queue = this.#queue.filter(({ id }) => !gone.has(id));
    }
  }

  #onJoined(id: string, ticket: number): void {
    if (this.#queue.some((waiter) => waiter.id === id)) return;
    if (!this.joined.includes(id)) this.joined.push(id);
    this.#queue.push({ id, ticket });
    this.#queue.sort((a, b) => a.ticket - b.ticket);
  }

  #note(violation: string): void {
    this.violations.push(violation);
  }
}

/**
 * MONITOR on a connection of its own. Unlike ioredis' `monitor()`, it does not fail where a command of others
 * comes right behind the reply to MONITOR, which ioredis takes for one to nothing: it was before the account.
 */
async function startMonitor(client: Redis): Promise<Redis> {
  const monitor = client.duplicate({ monitor: true, lazyConnect: false });
  await new Promise<void>((resolve, reject) => {
    monitor.once('monitoring', resolve);
    monitor.on('error', (error: Error) => {
      if (error.message.startsWith('Command queue state error')) return;
      monitor.disconnect();
      reject(error);
    });
  });
  return monitor;
}
