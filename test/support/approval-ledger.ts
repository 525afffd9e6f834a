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
      if (name === names.queue) ledger.#onQueue(command.toLowerCase(), args);
    });
    return ledger;
  }

  /** Approvals of the current window that have not been given back. */
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
    if (command === 'unlink') {
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
      if (!this.#current.has(id)) this.approved.push(id);
      this.#current.add(id);
    }
    if (this.#current.size > this.maxRequests) this.#note(`${this.#current.size} in one window`);
  }

  #onQueue(command: string, args: string[]): void {
    if (command === 'zadd') {
      this.#onJoined(args.filter((arg) => arg.toLowerCase() !== 'nx'));
    } else if (command === 'zrem') {
      const gone = new Set(args.map(idOf));
      this.#queue = this.#queue.filter(({ id }) => !gone.has(id));
    } else if (command === 'zremrangebyrank') {
      this.#queue.splice(0, Number(args[1]) + 1);
    }
  }

  #onJoined([ticket = '', member = '']: string[]): void {
    const id = idOf(member);
    if (this.#queue.some((waiter) => waiter.id === id)) return;
    if (!this.joined.includes(id)) this.joined.push(id);
    this.#queue.push({ id, ticket: Number(ticket) });
    this.#queue.sort((a, b) => a.ticket - b.ticket);
  }

  #note(violation: string): void {
    this.violations.push(violation);
  }
}

function idOf(member: string): string {
  return member.slice(0, member.indexOf('@'));
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
