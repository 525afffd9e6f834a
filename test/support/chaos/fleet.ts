import { setTimeout as delay } from 'node:timers/promises';

import { type ReplicaProcess, startReplica } from '../replica-process.js';

/** How often a start that is to end is looked at. */
const POLL_MILLIS = 5;

type Environment = Readonly<Record<string, string>>;

/** A process that serves, or has served, at one of the fleet's places. */
export interface Member {
  readonly place: number;
  readonly process: ReplicaProcess;
  readonly wasKilled: boolean;
}

/** How a replica ended that was asked to. */
export interface Exit {
  readonly member: Member;
  readonly code: number | NodeJS.Signals;
}

/** Replicas at numbered places; one that is killed has a successor at its place. */
export class Fleet {
  readonly #members: (Omit<Member, 'wasKilled'> & { wasKilled: boolean })[] = [];
  #starting = 0;
  /** Settles when replicas may start again. */
  #startsHeld: Promise<unknown> = Promise.resolve();

  private constructor(
    readonly size: number,
    private readonly environmentOf: (place: number) => Environment,
  ) {}

  static async start(size: number, environmentOf: (place: number) => Environment): Promise<Fleet> {
    const fleet = new Fleet(size, environmentOf);
    await Promise.all(fleet.places.map((place) => fleet.replace(place)));
    return fleet;
  }

  get places(): number[] {
    return Array.from({ length: this.size }, (_, place) => place);
  }

  /** Everyone who has ever served, in the order of their starts. */
  get members(): readonly Member[] {
    return this.#members;
  }

  /** The members that serve now. */
  get living(): readonly Member[] {
    return this.#members.filter(({ wasKilled }) => !wasKilled);
  }

  /** Where the replica at a place is to be asked, or was before it died. */
  urlOf(place: number): string {
    return this.#latest(place).process.url;
  }

  async kill(place: number): Promise<void> {
    const member = this.#latest(place);
    member.wasKilled = true;
    await member.process.kill('SIGKILL');
  }

  /** Starts a replica at a place where none serves, and resolves when it does. */
  async replace(place: number): Promise<void> {
    for (let held; held !== this.#startsHeld;) {
      held = this.#startsHeld;
      await held;
    }
    this.#starting += 1;
    try {
      const process = await startReplica(this.environmentOf(place));
      this.#members.push({ place, process, wasKilled: false });
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

  signal(place: number, signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#latest(place).process.signal(signal);
  }

  /** Asks all that live to stop, and resolves when they have. */
  stop(): Promise<Exit[]> {
    return Promise.all(
      this.living.map(async (member) => ({ member, code: await member.process.kill('SIGTERM') })),
    );
  }

  #latest(place: number) {
    return this.#members.findLast((member) => member.place === place)!;
  }
}
