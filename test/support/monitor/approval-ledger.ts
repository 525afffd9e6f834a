import type { Redis } from 'ioredis';

import { RedisAccount } from './redis-account.js';

/** MONITOR shows the start of a script, but its end only by the next command. */
const MARK_MILLIS = 20;

/** The account of one limiter key on one Redis without faults. */
export class ApprovalLedger {
  #marking: NodeJS.Timeout | undefined;

  private constructor(
    private readonly account: RedisAccount,
    private readonly key: string,
  ) {}

  /**
   * Begins the account.
   * @param client a client whose user may do everything
   * @param highestMaximum the highest maximum that the key may ever have
   */
  static async open(client: Redis, key: string, highestMaximum: number): Promise<ApprovalLedger> {
    const server = {
      address: `${client.options.host ?? ''}:${client.options.port ?? 6379}`,
      connect: (options: object) => client.duplicate(options),
      command: (name: string, ...args: (string | number)[]) => client.call(name, ...args),
    };
    // No request may be approved twice, however much later.
    const bounds = { highestMaximum, rememberedMillis: () => Infinity };
    const account = new RedisAccount([server], [key], bounds);
    const ledger = new ApprovalLedger(account, key);
    await account.upToNow();
    ledger.#marking = setInterval(() => void client.echo(key).catch(() => undefined), MARK_MILLIS);
    return ledger;
  }

  get violations(): readonly string[] {
    return this.account.violations;
  }

  /** The approved ids in order, from the queue and at once. */
  get approved(): string[] {
    return this.#approvals.map(({ id }) => id);
  }

  /** The ids that were approved from the queue, in order. */
  get served(): string[] {
    return this.#approvals.filter(({ isFromQueue }) => isFromQueue).map(({ id }) => id);
  }

  /** All ids that joined the queue, in order of arrival. */
  get joined(): string[] {
    return [...this.account.tickets.keys()];
  }

  /** Approvals of the current window that have not been released. */
  get inWindow(): number {
    return this.account.inWindow(this.key);
  }

  /** Resolves when everything up to now is recorded. */
  upToNow(): Promise<void> {
    return this.account.upToNow();
  }

  /** Waits until everything up to now is recorded, and ends the account. */
  async close(): Promise<void> {
    clearInterval(this.#marking);
    await this.upToNow();
    await this.account.close();
  }

  get #approvals() {
    return [...this.account.approvals.values()].flat();
  }
}
