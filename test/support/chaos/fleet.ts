import { setTimeout as delay } from 'node:timers/promises';

import { type ReplicaProcess, startReplica } from '../replica-process.js';

/** How often a start that is to end is looked at. */
const POLL_MILLIS = 5;

type Environment = Readonly<Record<string, string>>;

/** A process that serves, or has served, as one of the fleet's replicas. */
export interface Member {
  readonly index: number;
  readonly process: ReplicaProcess;
  /** Whether it was killed or stopped, and serves no more. */
  readonly wasKilled: boolean;
}

/** How a replica ended that was asked to. */
export interface Exit {
  readonly member: Member;
  readonly code: number | NodeJS.Signals;
}

/** Replicas by their indexes; the successor of one that is killed has its index. */
export class Fleet {
  readonly #members: (Omit<Member, 'wasKilled'> & { wasKilled: boolean })[] = [];
  #starting = 0;
  /** Settles when replicas may start again. */
  #startsHeld: Promise<unknown> = Promise.resolve();

  private constructor(
    readonly size: number,
    private readonly environmentOf: (index: number) => Environment,
  ) {}

  static async start(size: number, environmentOf: (index: number) => Environment): Promise<Fleet> {
    const fleet = new Fleet(size, environmentOf);
    await Promise.all(fleet.indexes.map((index) => fleet.replace(index)));
    return fleet;
  }

  get indexes(): number[] {
    return Array.from({ length: this.size }, (_, index) => index);
  }

  /** Everyone who has ever served, in the order of their starts. */
  get members(): readonly Member[] {
    return this.#members;
  }

  /** The members that serve now. */
  get living(): readonly Member[] {
    return this.#members.filter(({ wasKilled }) => !wasKilled);
  }

  /** The replica at an index, or the last one that was there. */
  at(index: number): ReplicaProcess {
    return this.#latest(index).process;
  }

  /** Where the replica at an index is to be asked, or was before it died. */
  urlOf(index: number): string {
    return this.at(index).url;
  }

  async kill(index: number): Promise<void> {
    const member = this.#latest(index);
    member.wasKilled = true;
    await member.process.kill('SIGKILL');
  }

  /**
   * Asks a replica to stop, and resolves when it has.
   * @throws Error if it does not end as it should
   */
  async terminate(index: number): Promise<void> {
    const member = this.#latest(index);
    member.wasKilled = true;
    const code = await member.process.kill('SIGTERM');
    if (code !== 0) throw new Error(`replica ${index} ended with ${code} on SIGTERM`);
  }

  /** Starts a replica at an index where none serves, and resolves when it does. */
  async replace(index: number): Promise<void> {
    for (let held; held !== this.#startsHeld;) {
      held = this.#startsHeld;
      await held;
    }
    this.#starting += 1;
    try {
      const process = await startReplica(this.environmentOf(index));
      this.#members.push({ index, process, wasKilled: false });
    } finally {
      this.#starting -= 1;
    }
  }

  /** Whether a replica is between its first line of code and its first request. */
  get isStarting(): boolean {
    return this.#starting > 0;
  }

  /** Does something in which no replica starts: one that finds a broken file then ends. */
  async whileNobodyStarts(work: () => Promise<void>): Promise<void> {
    while (this.isStarting) await delay(POLL_MILLIS);
    const done = work();
    this.#startsHeld = Promise.allSettled([this.#startsHeld, done]);
    await done;
  }

  signal(index: number, signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#latest(index).process.signal(signal);
  }

  /** Asks all that live to stop, and resolves when they have. */
  stop(): Promise<Exit[]> {
    return Promise.all(
      this.living.map(async (member) => ({ member, code: await member.process.kill('SIGTERM') })),
    );
  }

  #latest(index: number) {
    return this.#members.findLast((member) => member.index === index)!;
  }
}
